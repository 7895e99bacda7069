package trust

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrPolicy is the class of errors about images that the signature policy refuses, and about invalid policies.
var ErrPolicy = errors.New("signature policy")

// PolicyError is the error of an image that the signature policy refuses. It is of the class [ErrPolicy].
type PolicyError struct {
	// File is the policy.json, and Scope what of it is for the image: "default", or a transport and a scope in it. File
	// is empty if there is no policy, and a signature is required anyway.
	File, Scope string
	// Unverified tells that a signature is required (images.ClientOptions.RequireSigned), and the policy accepts the image
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

// Hint is why no signature was found; empty if that is a matter of configuration, or if a signature was found.
func (e *PolicyError) Hint() string {
	if e.NotFound == "" || e.Unverified || e.SearchOff != "" {
		return ""
	}
	return fmt.Sprintf("there is no %s: the image is not signed there in the form that policies read (Sigstore bundles "+
		"are not), or its signatures were left behind when it was copied", e.NotFound)
}

// PolicyFileError is the error of a signature policy that cannot be read or understood. It is of the class [ErrPolicy].
type PolicyFileError struct {
	File string
	Err  error
}

func (e *PolicyFileError) Error() string {
	var path *fs.PathError
	if errors.As(e.Err, &path) && path.Path == e.File {
		return fmt.Sprintf("%v: %v", ErrPolicy, e.Err)
	}
	return fmt.Sprintf("%v: %s: %v", ErrPolicy, e.File, e.Err)
}

func (e *PolicyFileError) Unwrap() []error { return []error{ErrPolicy, e.Err} }
