package build

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// ReferenceError is what is wrong with one reference of a composition.
type ReferenceError struct {
	Name  string
	Image string
	Err   error
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("reference %.200q (%.300s): %v", e.Name, redact.Text(e.Image), e.Err)
}
func (e *ReferenceError) Unwrap() error { return e.Err }

// ErrPackages is the class of errors about references that do not hold the packages that they should.
var ErrPackages = fault.New(fault.Input, "packages")

// check refuses references that do not hold what they are named for, and packages that several hold.
func (c *composer) check() error {
	var errs []error
	wrong := func(r *composed, format string, args ...any) {
		errs = append(errs, &ReferenceError{r.Name, r.Image, packagesError{fmt.Sprintf(format, args...)}})
	}
	holder := map[string]*composed{}
	for _, r := range c.refs {
		if r.told == nil && r.read == nil {
			continue // not known yet
		}
		names := r.packages()
		if r.told != nil && !slices.Equal(r.told, names) {
			wrong(r, "its layers are said to hold %s, but it holds %s", some(r.told), some(names))
			continue
		}
		switch has := slices.Contains(names, r.Name); {
		case c.in.AnyPackages:
		case len(names) == 0:
			wrong(r, "it holds no package")
		case !has:
			wrong(r, "it does not hold the package that it is named for, but %s", some(names))
		case len(names) > 1:
			wrong(r, "it holds other packages beside the one that it is named for: %s", some(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == r.Name })))
		}
		for _, name := range names {
			if first := holder[name]; first != nil {
				wrong(r, "package %q is in reference %.200q (%.300s) already", name, first.Name, redact.Text(first.Image))
				continue
			}
			holder[name] = r
		}
	}
	return errors.Join(errs...)
}

// packagesError is a text of the class [ErrPackages].
type packagesError struct{ text string }

func (e packagesError) Error() string { return e.text }
func (e packagesError) Unwrap() error { return ErrPackages }

// some is a list of names for a message.
func some(names []string) string {
	const most = 10
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%.100q", n))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}
