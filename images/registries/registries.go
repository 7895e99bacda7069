package registries

import "github.com/operator-bindery/bindery/internal/registry"

// Config is the configuration for registries. The zero value has the defaults of the containers library, without
// credentials. Most programs call its method Env, which completes it with what podman and docker find on the machine:
//
//   - AuthFile is the only file with credentials; AuthFiles are searched in their order if it is empty;
//   - SkipTLSVerify accepts any certificate; PlainHTTP accepts registries that do not speak TLS;
//   - CertDir has certificates, CertDirs directories HOST[:PORT] of them, and CAFile is one more file of authorities;
//   - RegistriesConf and RegistriesDir replace the system's registries.conf and registries.d;
//   - UserAgent is sent with every request.
type Config = registry.Config

// Throttle limits the requests and bytes of all clients that have it. It is safe for concurrent use; nil limits nothing.
type Throttle = registry.Throttle

// NewThrottle returns a throttle of that many requests at once to each host, and of that many bytes per second in all,
// received and sent: an image that goes from one registry to another counts twice. Zero is no limit. A request counts
// until its answer has been read, so that one blob at a time comes from a host with one request.
func NewThrottle(perHost int, bandwidth int64) *Throttle {
	return registry.NewThrottle(perHost, bandwidth)
}

// Errors of registries. All are of the class images.ErrRegistry.
var (
	// ErrPlainHTTP is the error of a registry that does not speak TLS, where plain HTTP is not allowed.
	ErrPlainHTTP = registry.ErrPlainHTTP
	// ErrNoDelete is the error of a registry that deletes no manifests.
	ErrNoDelete = registry.ErrNoDelete
	// ErrNoCatalog is the error of a registry that does not list its repositories, or not for these credentials.
	ErrNoCatalog = registry.ErrNoCatalog
)

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
