package canon

import (
	"errors"
	"io"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ReadError is an error of the reader of a stream, not of its content. It matches the reader's error with errors.Is and
// errors.As, except [io.EOF]: an interrupted stream must not look like one that ended.
type ReadError struct{ Err error }

func (e *ReadError) Error() string        { return e.Err.Error() }
func (e *ReadError) Is(target error) bool { return target != io.EOF && errors.Is(e.Err, target) }
func (e *ReadError) As(target any) bool   { return errors.As(e.Err, target) }

// ErrorClass returns the class of the reader's error.
func (e *ReadError) ErrorClass() fault.Class { return fault.ClassOf(e.Err) }
