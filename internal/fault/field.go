package fault

import (
	"fmt"
	"regexp"
	"strings"
)

// FieldError is an error about the fields of options. A program names what sets the fields in their place: see
// [FieldError.Named].
type FieldError struct {
	format string // names of fields are in braces
	args   []any
	class  Class
}

// Fieldf returns an error of the class [Usage] about the fields whose names stand in braces in the format, such as
// "{Port} is missing".
func Fieldf(format string, args ...any) *FieldError { return &FieldError{format, args, Usage} }

// InField returns an error that is of no class of its own: what a field names is at fault, and not the field.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{"{" + field + "}: %w", []any{err}, 0}
}

var field = regexp.MustCompile(`\{[A-Za-z]+\}`)

// Named returns the error with other names of fields, such as those of flags.
func (e *FieldError) Named(name func(field string) string) error {
	format := field.ReplaceAllStringFunc(e.format, func(f string) string {
		return strings.ReplaceAll(name(f[1:len(f)-1]), "%", "%%")
	})
	return &FieldError{format, e.args, e.class}
}

func (e *FieldError) Error() string { return e.text().Error() }

// Unwrap returns the error that the text quotes; nil if there is none.
func (e *FieldError) Unwrap() error {
	for _, a := range e.args {
		if err, ok := a.(error); ok {
			return err
		}
	}
	return nil
}

// ErrorClass implements [Classed].
func (e *FieldError) ErrorClass() Class { return e.class }

func (e *FieldError) text() error {
	format := field.ReplaceAllStringFunc(e.format, func(f string) string { return f[1 : len(f)-1] })
	return fmt.Errorf(format, e.args...)
}
