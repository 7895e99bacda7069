package build

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/redact"
)

// check refuses references without the package that they are named after, and packages of more than one reference.
func (c *composer) check() error {
	var errs []error
	wrong := func(r *composed, format string, args ...any) {
		errs = append(errs, &ReferenceError{r.Name, r.Image, packagesError{fmt.Sprintf(format, args...)}})
	}
	holder := map[string]*composed{}
	for _, r := range c.refs {
		if r.annotated == nil && r.read == nil {
			continue // not known yet
		}
		names := r.packages()
		if r.annotated != nil && !slices.Equal(r.annotated, names) {
			wrong(r, "its layers are annotated with %s, but it contains %s", some(r.annotated), some(names))
			continue
		}
		switch has := slices.Contains(names, r.Name); {
		case c.in.AnyPackages:
		case len(names) == 0:
			wrong(r, "it contains no package")
		case !has:
			wrong(r, "it does not contain the package that it is named after, but %s", some(names))
		case len(names) > 1:
			wrong(r, "it contains packages other than the one it is named after: %s",
				some(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == r.Name })))
		}
		for _, name := range names {
			if first := holder[name]; first != nil {
				wrong(r, "package %q is already in reference %.200q (%.300s)", name, first.Name,
					redact.Text(first.Image))
				continue
			}
			holder[name] = r
		}
	}
	return errors.Join(errs...)
}

// packagesError is an error of the class [ErrPackages].
type packagesError struct{ text string }

func (e packagesError) Error() string { return e.text }
func (e packagesError) Unwrap() error { return ErrPackages }

// some lists names for a message.
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
