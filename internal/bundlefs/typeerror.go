package bundlefs

import (
	"errors"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/shape"
)

// TypeProblem says of an error of decoding a value of JSON what is wrong, and the path in the value as far as it is
// known. The text of the error itself is for programmers: it has types of Go.
func TypeProblem(value []byte, err error) (path []any, text string) {
	f, ok := shape.FaultOf(value, err)
	if !ok {
		return nil, err.Error()
	}
	return f.Path, shape.Mismatch(f.Got, f.Want, f.Written)
}

// TypeError returns an error of decoding a value of JSON with the text of [TypeProblem].
func TypeError(value []byte, err error) error {
	path, text := TypeProblem(value, err)
	if len(path) > 0 {
		text = canon.PathName(path) + " " + text
	}
	return errors.New(text)
}
