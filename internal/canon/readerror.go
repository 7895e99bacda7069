package canon

import (
	"errors"
	"io"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ReadError is an error of the reader of a stream, as opposed to its content. It is what the reader's error is, by
// errors.Is and errors.As, but never [io.EOF]: a stream that breaks off is not one that has ended.
type ReadError struct{ Err error }

func (e *ReadError) Error() string        { return e.Err.Error() }
func (e *ReadError) Is(target error) bool { return target != io.EOF && errors.Is(e.Err, target) }
func (e *ReadError) As(target any) bool   { return errors.As(e.Err, target) }

// ErrorClass is the class of the reader's error.
func (e *ReadError) ErrorClass() fault.Class { return fault.ClassOf(e.Err) }
