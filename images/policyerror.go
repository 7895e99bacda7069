package images

import (
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrPolicy is the class of errors about images that the signature policy refuses, and about invalid policies.
var ErrPolicy = errors.New("signature policy")

// PolicyError is the error of an image that the signature policy refuses. It is of the class [ErrPolicy].
type PolicyError struct {
	// File is the policy.json, and Scope what of it is for the image: "default", or a transport and a scope in it. File
	// is empty if there is no policy, and a signature is required anyway.
	File, Scope string
	// Unverified tells that a signature is required ([ClientOptions.RequireSigned]), and the policy accepts the image
	// without one.
	Unverified bool
	// SearchOff is the repository in which the policy needs attached signatures, and in which they are not looked for:
	// no file of registries.d has "use-sigstore-attachments: true" for it. SearchOffBy is the file that has false.
	SearchOff, SearchOffBy string
	// NotFound is where an attached signature was looked for and there is none, REPOSITORY:TAG or a tag of a layout.
	NotFound string
	// Err says why.
	Err error
}

func (e *PolicyError) Error() string {
	const most = 2000 // there can be many signatures, each with its reason
	return fmt.Sprintf("%v: %s", ErrPolicy, fault.Clip(e.Err.Error(), most))
}

func (e *PolicyError) Unwrap() []error { return []error{ErrPolicy, e.Err} }
