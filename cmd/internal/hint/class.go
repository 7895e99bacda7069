package hint

import (
	"errors"
	"io/fs"

	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/fault"
)

// WithClass adds the class to errors that [cmdline.Classify] does not recognise: errors of the containers library and
// of signature policies.
func WithClass(err error) error {
	var known *cmdline.Error
	if err == nil || errors.As(err, &known) || fault.ClassOf(err) != 0 {
		return err
	}
	var unauthorized docker.ErrUnauthorizedForCredentials
	var status docker.UnexpectedHTTPStatusError
	switch {
	case errors.Is(err, images.ErrPolicy):
		return &cmdline.Error{Class: cmdline.ClassInput, Err: err}
	case errors.As(err, &unauthorized), errors.As(err, &status), errors.Is(err, docker.ErrTooManyRequests):
		return &cmdline.Error{Class: cmdline.ClassNetwork, Err: err}
	}
	return err
}

// WithObject sets the reference as the object of an error about exactly one reference.
func WithObject(err error) error {
	var known *cmdline.Error
	if errors.As(err, &known) && known.Object != "" {
		return err
	}
	object, ok := "", true
	var walk func(error)
	walk = func(err error) {
		var name string
		switch e := err.(type) {
		case interface{ Object() string }:
			name = e.Object()
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				walk(err)
			}
			return
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
			return
		default:
			return
		}
		ok = ok && (object == "" || object == name)
		object = name
	}
	walk(err)
	var path *fs.PathError
	if object == "" || !ok || errors.As(err, &path) {
		return err
	}
	hint := ""
	if known != nil {
		hint = known.Hint
	}
	return &cmdline.Error{Class: cmdline.Classify(err), Object: object, Hint: hint, Err: err}
}
