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
func (r *reader) dependency(d Declaration) bool {
	wrong := func(format string, args ...any) {
		r.addProblem(r.problem(RuleDependency, d.place(), fmt.Sprintf(format, args...)))
	}
	switch d.Type {
	case declcfg.PropertyGVK:
		r.reportMissing(d, "group", "API Group is empty")
		r.reportMissing(d, "version", "API Version is empty")
		r.reportMissing(d, "kind", "API Kind is empty")
	case declcfg.PropertyPackage:
		r.reportMissing(d, "packageName", "Package name is empty")
		r.needsRange(d, "version")
	case declcfg.PropertyLabel:
		r.reportMissing(d, "label", "Label information is missing")
	case declcfg.PropertyConstraint:
		if len(d.Value) > maxConstraint {
			r.fatal(r.problem(RuleLimit, d.place(),
				fmt.Sprintf("a constraint of %d bytes (limit %d)", len(d.Value), maxConstraint)))
			return false
		}
		if kinds := constraintForms(d.Value); kinds != 1 {
			wrong("a constraint must have exactly one of %q, found %d", constraintKinds, kinds)
		}
	default:
		wrong("unsupported dependency type %s: it is passed over; the types are %q, %q, %q and %q", fault.Quote(d.Type),
			declcfg.PropertyPackage, declcfg.PropertyGVK, declcfg.PropertyConstraint, declcfg.PropertyLabel)
		return false
	}
	return true
}

var constraintKinds = []string{"all", "any", "cel", "gvk", "not", "package"}

// constraintForms counts the forms that a constraint has. Their content is not checked here.
func constraintForms(value []byte) (forms int) {
	jsonscan.Members(value, func(key, _ []byte) bool {
		if slices.Contains(constraintKinds, string(key)) {
			forms++
		}
		return true
	})
	return forms
}
