package build

import (
	"errors"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/serverbin"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// The classes of errors of this package.
var (
	// errLabel reports a label of [Options.Labels] that contradicts the content of the image.
	errLabel = fault.New(fault.Usage, "the label contradicts the image")
	// ErrNoServer reports a platform without an embedded server.
	ErrNoServer = serverbin.ErrNoServer
	// ErrPackages is the class of errors about the packages of references.
	ErrPackages = fault.New(fault.Input, "packages")
	// ErrTooFewLayers reports that the layers below and above the packages use up [Options.MaxLayers].
	ErrTooFewLayers = errors.New("no layer is left")
)

// ServerError reports a server that cannot be added to the image.
type ServerError struct {
	Platform v1.Platform // zero where the error is about several
	Err      error
}

func (e *ServerError) Error() string { return e.Err.Error() }
func (e *ServerError) Unwrap() error { return e.Err }

// Object is the architecture of the platform.
func (e *ServerError) Object() string { return e.Platform.Architecture }

// ErrorClass classifies it as a usage error: another platform or server is needed.
func (*ServerError) ErrorClass() fault.Class { return fault.Usage }

// ReferenceError is a problem of one reference of a composition.
type ReferenceError struct {
	Name  string
	Image string
	Err   error
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("reference %.200q (%.300s): %v", e.Name, redact.Text(e.Image), e.Err)
}
func (e *ReferenceError) Unwrap() error { return e.Err }

// Object is the image, without credentials.
func (e *ReferenceError) Object() string { return redact.Text(e.Image) }
