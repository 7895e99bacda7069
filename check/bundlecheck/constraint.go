package bundlecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/constraints"

	"github.com/operator-bindery/bindery/bundle"
)

// maxRules is the maximum length of all CEL rules of a bundle. Compiling one rule of the library's maximum length takes
// a third of a second.
const maxRules = 1 << 20

// ruleCost is the length that a short rule counts as: so there can be 4,096, which take a second.
const ruleCost = 256

// constraintChecker checks the values of olm.constraint dependencies by the rules of OLM's resolver library.
type constraintChecker struct {
	env  *constraints.CelEnvironment // created for the first rule
	left int                         // remaining bytes of rules
	// guard runs a slow function and returns at the time limit even if the function has not.
	guard func(task func())
	fail  func(path []any, format string, args ...any)
}

// check checks one value and all constraints nested in it.
func (c *constraintChecker) check(value json.RawMessage) {
	parsed, err := constraints.Parse(value)
	switch {
	case errors.Is(err, constraints.ErrMaxConstraintSizeExceeded):
		c.fail(nil, "%v", err)
		return
	case err != nil:
		c.fail(nil, "couldn't parse dependency of type olm.constraint: %w", err)
		return
	}
	c.one(parsed, nil)
}

// one checks a constraint, which must have exactly one of several forms.
func (c *constraintChecker) one(v constraints.Constraint, path []any) {
	var kinds []string
	below := func(key string) []any { return append(path[:len(path):len(path)], key) }
	if v.Cel != nil {
		kinds = append(kinds, "cel")
		c.rule(v.Cel.Rule, below("cel"))
	}
	if v.Package != nil {
		kinds = append(kinds, "package")
		c.pkg(v.Package, below("package"))
	}
	if v.GVK != nil {
		kinds = append(kinds, "gvk")
		for _, text := range missingGVK(v.GVK.Group, v.GVK.Version, v.GVK.Kind) {
			c.fail(below("gvk"), "%s", text)
		}
	}
	for _, compound := range []struct {
		key   string
		value *constraints.CompoundConstraint
	}{{"all", v.All}, {"any", v.Any}, {"not", v.Not}} {
		if compound.value == nil {
			continue
		}
		kinds = append(kinds, compound.key)
		inner := compound.value.Constraints
		if len(inner) == 0 {
			c.fail(below(compound.key), "the constraint %q has no constraints in it", compound.key)
		}
		for i, v := range inner {
			c.one(v, append(below(compound.key), "constraints", i))
		}
	}
	switch len(kinds) {
	case 1:
	case 0:
		// Authors of the only form that opm knows expect opm's message.
		c.fail(path, "The CEL field is missing: a constraint is one of cel, package, gvk, all, any and not")
	default:
		c.fail(path, "a constraint is exactly one thing, not %s", strings.Join(kinds, " and "))
	}
}

func (c *constraintChecker) pkg(p *constraints.PackageConstraint, path []any) {
	if p.PackageName == "" {
		c.fail(path, "Package name is empty")
	}
	if text := bundle.RangeProblem(p.VersionRange); text != "" {
		c.fail(append(path, "versionRange"), "%s", text)
	}
}

// rule compiles an expression in the resolver's environment: the list "properties" of maps and the function
// "semver_compare"; its result must be a boolean.
func (c *constraintChecker) rule(rule string, path []any) {
	path = append(path, "rule")
	if strings.TrimSpace(rule) == "" {
		c.fail(path, "The CEL expression is missing")
		return
	}
	if c.left < 0 {
		return // has been reported
	}
	if c.left -= max(len(rule), ruleCost); c.left < 0 {
		c.fail(path,
			"the CEL expressions of the bundle are longer than %d bytes, or more than %d: this one and those after "+
				"it are not checked", maxRules, maxRules/ruleCost)
		return
	}
	if c.env == nil {
		c.env = constraints.NewCelEnvironment()
	}
	env, fail := c.env, c.fail
	c.guard(func() {
		if _, err := env.Validate(rule); err != nil {
			fail(path, "Invalid CEL expression: %s", celText(err))
		}
	})
}

// celText returns the compiler's error as one line, without the copy of the expression.
func celText(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if text, ok := strings.CutPrefix(line, "ERROR: <input>:"); ok {
			lines = append(lines, text)
		}
	}
	if len(lines) == 0 {
		lines = []string{err.Error()}
	}
	if more := len(lines) - 3; more > 0 {
		lines = append(lines[:3], fmt.Sprintf("and %d more", more))
	}
	return cut(strings.Join(lines, "; "), 300)
}

// missingGVK names the missing parts of a group, version and kind.
func missingGVK(group, version, kind string) (out []string) {
	for _, part := range []struct{ name, value string }{{"Group", group}, {"Version", version}, {"Kind", kind}} {
		if part.value == "" {
			out = append(out, "API "+part.name+" is empty")
		}
	}
	return out
}
