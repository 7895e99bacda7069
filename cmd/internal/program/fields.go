package program

import (
	"regexp"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// flagOf are the flags that set fields of options and have not the field's name in their form, as --if-digest has that of
// IfDigest.
var flagOf = map[string]string{"Tags": "tag", "SBOMs": "sbom", "SBOMFiles": "sbom-file", "Form": "archive-format",
	"Catalogs": "catalog"}

// humps are the places in the name of a field where a word begins.
var humps = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// FlagOf returns the flag that sets a field of options.
func FlagOf(field string) string {
	if flag, ok := flagOf[field]; ok {
		return "--" + flag
	}
	return "--" + strings.ToLower(humps.ReplaceAllString(field, "$1$3-$2$4"))
}

// inFlags is an error in whose text flags are named in place of fields.
type inFlags struct {
	error
	text string
}

func (e *inFlags) Error() string { return e.text }
func (e *inFlags) Unwrap() error { return e.error }

// InFlags names flags in place of the fields of options that an error is about.
func InFlags(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case *fault.FieldError:
			text = strings.Replace(text, e.Error(), e.Named(FlagOf).Error(), 1)
			walk(e.Unwrap())
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				walk(err)
			}
		}
	}
	if walk(err); text == err.Error() {
		return err
	}
	return &inFlags{err, text}
}
