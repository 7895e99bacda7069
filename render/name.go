package render

import (
	"fmt"
	"syscall"

	dockerref "go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// NameError reports a reference that is neither a local path nor a full image name. Most are misspelled paths: a short
// name such as "catalog" or "acme/catalog" is never looked up in a default registry. It wraps the error of the missing
// file.
type NameError struct {
	Reference string
	// Reason explains why it is not an image name.
	Reason error
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%v, and %.300q is no full name of an image: %v", error(syscall.ENOENT),
		redact.Text(e.Reference), e.Reason)
}

// Hint says what a reference is.
func (e *NameError) Hint() string {
	return "a reference is a catalog directory, a bundle directory, an index database or an image: " +
		"REGISTRY/NAME:TAG, docker://NAME, oci:DIR:TAG, oci-archive:FILE"
}

// OpmMessage returns opm's message for it.
func (e *NameError) OpmMessage() string {
	return fmt.Sprintf("failed to pull image %.300q: %v", redact.Text(e.Reference), e.Reason)
}

func (e *NameError) Unwrap() []error { return []error{syscall.ENOENT, e.Reason} }

// ErrorClass returns that of the local machine: most such references are misspelled paths.
func (e *NameError) ErrorClass() fault.Class { return fault.Local }

// CheckName refuses references that are no full names of images, with a transport or a registry: a [*NameError].
func CheckName(ref string) error { return checkName(ref, transports()) }

func checkName(ref string, transports transport.Table) error {
	if transports.Has(ref) {
		return nil
	}
	if _, err := dockerref.ParseNamed(ref); err != nil {
		return &NameError{Reference: ref, Reason: err}
	}
	return nil
}

// ReferenceError reports which reference could not be rendered. Its text contains no credentials.
type ReferenceError struct {
	Reference string
	Err       error
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("render reference %.300q: %v", redact.Text(e.Reference), e.Err)
}
func (e *ReferenceError) Unwrap() error { return e.Err }

// Object is the reference, without credentials.
func (e *ReferenceError) Object() string { return redact.Text(e.Reference) }
