package registry

import (
	"errors"
	"strings"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Wrap makes an error one of [fault.ErrRegistry]. Its text is unchanged.
func Wrap(err error) error { return classified{err} }

type classified struct{ error }

func (e classified) Unwrap() []error { return []error{fault.ErrRegistry, e.error} }

// ofClass adds a class of package store to an error, whose text is unchanged.
func ofClass(class, err error) error { return inClass{err, class} }

type inClass struct {
	error
	class error
}

func (e inClass) Unwrap() []error { return []error{e.class, e.error} }

// Is tells of a refusal of the credentials that it is [store.ErrDenied], and of one to show a tag that it is
// [store.ErrHidden].
func (e *StatusError) Is(class error) bool {
	switch class {
	case store.ErrDenied:
		return e.unauthorized()
	case store.ErrHidden:
		return e.unauthorized() && strings.Contains(e.Request, "/manifests/") &&
			!strings.Contains(e.Request, "/manifests/sha256:")
	}
	return false
}

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of there being none.
func IsUnauthorized(err error) bool { return errors.Is(err, store.ErrDenied) }
