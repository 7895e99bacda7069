package bundle

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// maxConstraint is the API's limit for the value of an olm.constraint, in bytes.
const maxConstraint = 131072

// dependency checks an entry of dependencies.yaml as far as a catalog needs it, and reports whether to keep it.
func (r *reader) dependency(at Problem, d declcfg.Property) bool {
	wrong := func(format string, args ...any) {
		at.Message = fmt.Sprintf(format, args...)
		r.wrong(at)
	}
	needs := func(field, message string) {
		if jsonscan.TextAt(d.Value, field) == "" {
			wrong("%s: set value.%s to text", message, field)
		}
	}
	switch d.Type {
	case declcfg.PropertyGVK:
		needs("group", "API Group is empty")
		needs("version", "API Version is empty")
		needs("kind", "API Kind is empty")
	case declcfg.PropertyPackage:
		needs("packageName", "Package name is empty")
		needs("version", "Package version is empty")
	case declcfg.PropertyLabel:
		needs("label", "Label information is missing")
	case declcfg.PropertyConstraint:
		if len(d.Value) > maxConstraint {
			at.Rule = RuleLimit
			at.Message = fmt.Sprintf("a constraint of %d bytes (limit %d)", len(d.Value), maxConstraint)
			r.fatal(at)
			return false
		}
		r.constraint(at, d.Value)
	default:
		wrong("unsupported dependency type %s: it is passed over; the types are %q, %q, %q and %q", fault.Quote(d.Type),
			declcfg.PropertyPackage, declcfg.PropertyGVK, declcfg.PropertyConstraint, declcfg.PropertyLabel)
		return false
	}
	return true
}

var constraintKinds = []string{"all", "any", "cel", "gvk", "not", "package"}

// constraint checks that a constraint has exactly one form. Its content is not checked here.
func (r *reader) constraint(at Problem, value []byte) {
	kinds := 0
	jsonscan.Members(value, func(key, _ []byte) bool {
		if slices.Contains(constraintKinds, string(key)) {
			kinds++
		}
		return true
	})
	if kinds != 1 {
		at.Message = fmt.Sprintf("a constraint must have exactly one of %q, found %d", constraintKinds, kinds)
		r.wrong(at)
	}
}
