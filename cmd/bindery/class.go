package main

import (
	"errors"
	"io/fs"
	"syscall"

	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/compose"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/appregistry"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/sqlite"
)

// withClass gives an error of a library its class. Errors of the file system and of the network are told apart by
// [cmdline.Classify].
func withClass(err error) error {
	var known cmdline.Classed
	if err == nil || errors.As(err, &known) {
		return err
	}
	class := cmdline.Class(0)
	var invalid *declcfg.ValidationError
	var name *render.NameError
	var reference *build.ReferenceError
	var unauthorized docker.ErrUnauthorizedForCredentials
	var status docker.UnexpectedHTTPStatusError
	var conflict *images.ConflictError
	switch {
	case errors.As(err, &conflict):
		class = cmdline.ClassConflict
	// What the machine lacks is not the input's fault, whatever was being read.
	case errors.As(err, &name), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EIO):
		class = cmdline.ClassLocal
	case errors.Is(err, build.ErrLabel):
		class = cmdline.ClassUsage
	case errors.Is(err, images.ErrLimit), errors.Is(err, sqlite.ErrLimit), errors.Is(err, declcfg.ErrLimit), errors.Is(err, bundle.ErrLimit), errors.Is(err, bundlefs.ErrLimit),
		errors.Is(err, edit.ErrLimit), errors.Is(err, appregistry.ErrLimit):
		class = cmdline.ClassLimit
	case errors.Is(err, images.ErrIntegrity), errors.Is(err, sqlite.ErrDamaged), errors.Is(err, serve.ErrIntegrity), errors.Is(err, serve.ErrCorrupt):
		class = cmdline.ClassIntegrity
	case errors.Is(err, sqlite.ErrLocked), errors.Is(err, sqlite.ErrIO), errors.Is(err, sqlite.ErrWrite):
		class = cmdline.ClassLocal
	case errors.Is(err, images.ErrPolicy) && !errors.Is(err, images.ErrRegistry):
		class = cmdline.ClassInput
	case errors.Is(err, images.ErrInvalid), errors.Is(err, sqlite.ErrInvalid), errors.Is(err, sqlite.ErrLoss), errors.Is(err, sqlite.ErrNotDatabase),
		errors.Is(err, build.ErrPackages), errors.Is(err, compose.ErrInvalid), errors.Is(err, sqlite.ErrUnsupported), errors.Is(err, bundle.ErrInvalid), errors.Is(err, appregistry.ErrInvalid), errors.Is(err, render.ErrPlatformsDiffer), errors.As(err, &invalid):
		class = cmdline.ClassInput
	case errors.As(err, &unauthorized), errors.As(err, &status), errors.Is(err, docker.ErrTooManyRequests):
		class = cmdline.ClassNetwork
	case errors.Is(err, images.ErrRegistry) && cmdline.Classify(err) != cmdline.ClassLocal:
		class = cmdline.ClassNetwork
	case errors.As(err, &reference) && cmdline.Classify(err) != cmdline.ClassLocal && cmdline.Classify(err) != cmdline.ClassNetwork:
		class = cmdline.ClassInput
	default:
		return err
	}
	return &cmdline.Error{Class: class, Err: err}
}

// withObject gives an error that is about one reference that reference as its object. An error that is about several is
// about none of them more than the others.
func withObject(err error) error {
	var known *cmdline.Error
	if errors.As(err, &known) && known.Object != "" {
		return err
	}
	object, ok := "", true
	var walk func(error)
	walk = func(err error) {
		var name string
		switch e := err.(type) {
		case *edit.Problem:
			name = editObject(e)
		case *build.ReferenceError:
			name = images.WithoutCredentials(e.Image)
		case *render.ReferenceError:
			name = images.WithoutCredentials(e.Reference)
		case *images.PullError:
			name = e.Name
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
