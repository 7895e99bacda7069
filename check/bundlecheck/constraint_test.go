package bundlecheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
)

// dependencyErrors returns the errors of one entry of dependencies.yaml, with the field below its value.
func dependencyErrors(ctx context.Context, kind, value string) (out []string) {
	r := &run{ctx: ctx}
	left := maxRules
	r.dependency(bundle.Dependency{Type: kind, Value: []byte(value)}, &left,
		func(_ string, below []any, format string, args ...any) {
			text := fmt.Errorf(format, args...).Error()
			if field := canon.PathName(below); field != "" {
				text = field + ": " + text
			}
			out = append(out, text)
		})
	return out
}

func TestDependencies(t *testing.T) {
	const none = ""
	for _, c := range []struct{ name, kind, value, want string }{
		{"gvk", "olm.gvk", `{"group":"g","version":"v1","kind":"K"}`, none},
		{"gvk without anything", "olm.gvk", `{}`, "API Group is empty|API Version is empty|API Kind is empty"},
		{"gvk of another shape", "olm.gvk", `[]`,
			"couldn't parse dependency of type olm.gvk: json: cannot unmarshal array into Go value of type " +
				"property.GVK"},
		{"package", "olm.package", `{"packageName":"etcd","version":">0.6.0 <1.0.0"}`, none},
		{"package without anything", "olm.package", `{}`, "Package name is empty|version: Package version is empty"},
		{"package with no range", "olm.package", `{"packageName":"etcd","version":"one"}`,
			"version: Invalid semver format version: "},
		{"package with a range of a megabyte", "olm.package",
			`{"packageName":"etcd","version":"` + strings.Repeat(">1.0.0 ", 150_000) + `"}`,
			"version: Invalid semver format version: longer than 4096 bytes"},
		{"label", "olm.label", `{"label":"x"}`, none},
		{"empty label", "olm.label", `{}`, "Label information is missing"},
		{"another type", "olm.crd", `{}`, "couldn't parse dependency of type olm.crd"},

		{"cel", "olm.constraint",
			`{"failureMessage":"m","cel":{"rule":"properties.exists(p, p.type == \"olm.package\")"}}`, none},
		{"semver_compare", "olm.constraint",
			`{"cel":{"rule":"properties.exists(p, semver_compare(p.value.version, \"1.0.0\") >= 0)"}}`, none},
		{"empty rule", "olm.constraint", `{"cel":{"rule":" "}}`, "cel.rule: The CEL expression is missing"},
		{"cel of another type", "olm.constraint", `{"cel":{"rule":"1 + 1"}}`,
			"cel.rule: Invalid CEL expression: cel expressions must have type Bool"},
		{"cel that does not parse", "olm.constraint", `{"cel":{"rule":"true &&"}}`,
			"cel.rule: Invalid CEL expression: 1:8: Syntax error"},
		{"cel with an unknown variable", "olm.constraint", `{"cel":{"rule":"props.size() > 0"}}`,
			"cel.rule: Invalid CEL expression: 1:1: undeclared reference to 'props'"},
		{"nothing", "olm.constraint", `{"failureMessage":"m"}`, "The CEL field is missing"},
		{"two things", "olm.constraint",
			`{"package":{"packageName":"a","versionRange":"1.0.0"},"gvk":{"group":"g","version":"v","kind":"k"}}`,
			"a constraint is exactly one thing, not package and gvk"},
		{"unknown field", "olm.constraint", `{"all":{"constraints":[{"pakage":{}}]}}`,
			`couldn't parse dependency of type olm.constraint: json: unknown field "pakage"`},
		{"text that YAML made a boolean", "olm.constraint", `{"failureMessage":false,"cel":{"rule":"true"}}`,
			"couldn't parse dependency of type olm.constraint: json: cannot unmarshal bool into Go struct field " +
				"Constraint.failureMessage of type string"},
		{"compound", "olm.constraint",
			`{"all":{"constraints":[{"package":{"packageName":"a","versionRange":">=1.0.0"}},{"not":{"constraints":[{"gvk":{"group":"g","version":"v","kind":"k"}}]}},{"any":{"constraints":[{"cel":{"rule":"true"}}]}}]}}`, none},
		{"empty compound", "olm.constraint", `{"any":{"constraints":[]}}`,
			`any: the constraint "any" has no constraints in it`},
		{"faults within", "olm.constraint",
			`{"all":{"constraints":[{"package":{"packageName":"","versionRange":"x"}},{"not":{"constraints":[{"gvk":{"group":"g"}},{"cel":{"rule":"1"}}]}}]}}`,
			"all.constraints[0].package: Package name is empty|all.constraints[0].package.versionRange: Invalid " +
				"semver format version: |all.constraints[1].not.constraints[0].gvk: API Version is " +
				"empty|all.constraints[1].not.constraints[0].gvk: API Kind is " +
				"empty|all.constraints[1].not.constraints[1].cel.rule: Invalid CEL expression: cel expressions must " +
				"have type Bool"},
		{"too large", "olm.constraint", `{"failureMessage":"` + strings.Repeat("x", 131_072) + `"}`,
			"olm.constraint value is greater than max constraint size 131072 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := dependencyErrors(t.Context(), c.kind, c.value)
			want := strings.Split(c.want, "|")
			if c.want == none {
				want = nil
			}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Expensive rules are refused, compiled, or abandoned at the time limit.
func TestHostileRulesCostLittle(t *testing.T) {
	const size = 99_000
	for name, rule := range map[string]string{
		"parentheses": strings.Repeat("(", size/2) + "true" + strings.Repeat(")", size/2),
		"conjunction": "true" + strings.Repeat("&&true", size/6),
		"sum":         "1" + strings.Repeat("+1", size/2) + "==1",
		"not":         strings.Repeat("!", size) + "true",
		"macros":      strings.Repeat("properties.exists(p,", size/21) + "true" + strings.Repeat(")", size/21),
		"list":        "[" + strings.Repeat("1,'a',", size/6) + "1]==[1]",
		"calls":       strings.Repeat("a(", size/2),
		"garbage":     strings.Repeat("@#$", size/3),
		"types": "true" + strings.Repeat("&&"+strings.Repeat("[", 100)+strings.Repeat("]",
			100)+"=="+strings.Repeat("{1:", 100)+"1"+strings.Repeat("}", 100), 10),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			text := strings.Join(dependencyErrors(ctx, "olm.constraint", fmt.Sprintf(`{"cel":{"rule":%q}}`, rule)),
				"\n")
			if len(text) > 2000 || strings.Contains(text, "\n") {
				t.Errorf("the message has %d bytes: %.300s", len(text), text)
			}
		})
	}
}

// The total of all rules of a bundle is limited too.
func TestRulesOfOneBundleAreBounded(t *testing.T) {
	r := &run{ctx: context.Background()}
	left, refused := maxRules, 0
	d := bundle.Dependency{Type: declcfg.PropertyConstraint,
		Value: []byte(`{"cel":{"rule":"true` + strings.Repeat(" ", 90_000) + `"}}`)}
	for range 20 {
		r.dependency(d, &left, func(_ string, _ []any, format string, args ...any) {
			if text := fmt.Sprintf(format, args...); !strings.Contains(text, "longer than 1048576 bytes") {
				t.Errorf("got %s", text)
			}
			refused++
		})
	}
	if refused != 1 {
		t.Errorf("it was told %d times", refused)
	}
	left, refused = maxRules, 0
	d.Value = []byte(`{"cel":{"rule":"true"}}`)
	for range maxRules/ruleCost + 10 {
		r.dependency(d, &left, func(string, []any, string, ...any) { refused++ })
	}
	if refused != 1 {
		t.Errorf("many short rules: it was told %d times", refused)
	}
}
