package images

import (
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/registry"
)

// The classes of errors, for use with [errors.Is].
var (
	// ErrInvalid is the class of errors about input that breaks a rule of its format.
	ErrInvalid = fault.ErrInvalid
	// ErrLimit is the class of errors about input that is larger than it may be.
	ErrLimit = fault.ErrLimit
	// ErrIntegrity is the class of errors about content that is not what its digest or size says.
	ErrIntegrity = fault.ErrIntegrity
	// ErrRegistry is the class of errors of registries, and of the way to them.
	ErrRegistry = fault.ErrRegistry
	// ErrPlainHTTP is the error of a registry that does not speak TLS, where plain HTTP is not allowed.
	ErrPlainHTTP = registry.ErrPlainHTTP
)

// LimitError is an error of the class [ErrLimit] about a limit that can be set. Its text names the limit and its value.
type LimitError = limit.Error

// StatusError is an answer of a registry that is no success. Its fields are the Status, and the Codes of the errors in
// the answer (distribution specification, "Error codes").
type StatusError = registry.StatusError

// RefusedError is the error of a registry that takes something else than most: Why is [RefusedSize], [RefusedName] or
// [RefusedRepository], and the Repository, Digest and Size are those of what was written.
type RefusedError = registry.RefusedError

// The reasons of a [RefusedError].
const (
	// RefusedSize is a blob or manifest that is too large, for the registry or for a proxy before it.
	RefusedSize = registry.RefusedSize
	// RefusedName is the name of a repository, such as one with too many components.
	RefusedName = registry.RefusedName
	// RefusedRepository is a repository that does not exist and that the registry does not make.
	RefusedRepository = registry.RefusedRepository
)

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of a request without any.
func IsUnauthorized(err error) bool { return registry.IsUnauthorized(err) }
