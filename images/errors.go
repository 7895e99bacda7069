package images

import (
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
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
	// ErrPolicy is the class of errors about images that the signature policy refuses, and about invalid policies.
	ErrPolicy = trust.ErrPolicy
)

// PolicyError is the error of an image that the signature policy refuses. It is of the class [ErrPolicy]. Its fields,
// which are empty if they do not apply, are:
//
//	File, Scope            string // the policy.json, and what of it is for the image
//	Unverified             bool   // a signature is required, and the policy accepts the image without one
//	SearchOff, SearchOffBy string // the repository where registries.d has signatures not looked for, and its file
//	NotFound               string // where an attached signature was looked for and there is none
//	Err                    error
type PolicyError = trust.PolicyError

// LimitError is an error of the class [ErrLimit] about a limit that can be set. Its text names the limit and its value.
type LimitError = limit.Error

// Limits bound what is read from an image. Its fields are, with their defaults if they are zero:
//
//	Compressed   int64 // total size of the layers as transferred, in bytes: 4 GiB
//	Uncompressed int64 // total size of the layers as archives, in bytes: 8 GiB
//	File         int64 // size of one extracted file, in bytes: 64 MiB, or 1 GiB for CopyFile
//	Entries      int   // number of entries of all archives: 200,000
//	Ratio        int64 // of uncompressed to compressed size of a layer beyond its first 64 MiB: 200
//	Memory       int64 // how much of the extracted files is in memory and not in a temporary file, in bytes: 16 MiB
type Limits = limit.Limits
