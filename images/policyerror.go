package images

import "github.com/operator-bindery/bindery/internal/trust"

// ErrPolicy is the class of errors about images that the signature policy refuses, and about invalid policies.
var ErrPolicy = trust.ErrPolicy

// Policy is a signature policy, which package images/policy reads.
type Policy = trust.Policy

// PolicyError is the error of an image that the signature policy refuses, with the File and Scope of the policy, and
// where attached signatures were looked for. It is of the class [ErrPolicy].
type PolicyError = trust.PolicyError

// PolicyFileError is the error of a signature policy that cannot be read or understood. It is of the class [ErrPolicy].
type PolicyFileError = trust.PolicyFileError
