package atomicfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ApartError is the error about an output that is the input or inside it.
type ApartError struct{ In, Out string }

func (e *ApartError) Error() string {
	return fmt.Sprintf("the output %q is the input %q or inside it", e.Out, e.In)
}

// ErrorClass implements [fault.Classed].
func (e *ApartError) ErrorClass() fault.Class { return fault.Usage }

// Hint is what to do about it.
func (e *ApartError) Hint() string { return "choose an output outside of the input" }

// Object is the output.
func (e *ApartError) Object() string { return e.Out }

// CheckApart refuses an output that is the input or inside it: it would overwrite the input, or become a part of it. The
// error is an [*ApartError].
func CheckApart(in, out string) error {
	from, err := Resolve(in)
	if err != nil {
		return nil // the input does not exist or is an image; reading it will report errors
	}
	to, err := Resolve(out)
	if err != nil {
		return nil
	}
	if to != from && !strings.HasPrefix(to, strings.TrimSuffix(from, string(filepath.Separator))+string(filepath.Separator)) {
		return nil
	}
	return &ApartError{In: in, Out: out}
}

// CheckResult refuses, before the work, a file of results that cannot be written, or that is or lies in one of the inputs:
// it would overwrite the input or become a part of it. An empty path is none, and "-" is refused. Errors name the field
// that has the path.
func CheckResult(field, path string, inputs ...string) error {
	switch path {
	case "":
		return nil
	case "-":
		return fault.Fieldf("{"+field+"} %q: expected a file name", path)
	}
	if err := CheckFile(path); err != nil {
		return fault.InField(field, err)
	}
	for _, in := range inputs {
		if err := CheckApart(in, path); in != "" && err != nil {
			return fault.InField(field, err)
		}
	}
	return nil
}

// Resolve returns the absolute path without links. Trailing elements need not exist.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}
