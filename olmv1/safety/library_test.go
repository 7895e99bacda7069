package safety_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"

	"github.com/operator-bindery/bindery/olmv1/safety"
)

// controller returns the lines of operator-controller's message about two whole definitions, sorted: what the library
// says with its configuration, worded for the tests as this package words it.
func controller(t testing.TB, from, to safety.Definition) []string {
	t.Helper()
	r, err := runner.New(&config.Config{Conversion: config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}}}}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var crds [2]apiextensionsv1.CustomResourceDefinition
	for i, d := range []safety.Definition{from, to} {
		var content map[string]any
		if err := json.Unmarshal(text(t, d), &content); err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &crds[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range crds[0].Spec.Versions {
		if v.Storage {
			crds[0].Status.StoredVersions = append(crds[0].Status.StoredVersions, v.Name)
		}
	}
	results := r.Run(&crds[0], &crds[1])
	var out []string
	add := func(version, property string, all []validations.ComparisonResult) {
		for _, result := range all {
			for _, text := range result.Errors {
				c := safety.Change{Version: version, Property: property, Check: result.Name,
					Message: safety.Worded(result.Name, text)}
				out = append(out, c.String())
			}
		}
	}
	add("", "", results.CRDValidation)
	for _, part := range [][]version.VersionedPropertyComparisonResult{results.SameVersionValidation,
		results.ServedVersionValidation} {
		for _, v := range part {
			for _, p := range v.PropertyComparisons {
				add(v.Version, p.Property, p.ComparisonResults)
			}
		}
	}
	return sorted(out)
}

func text(t testing.TB, d safety.Definition) []byte {
	t.Helper()
	out, err := d.Read()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

// random returns a schema by chance.
func random(r *rand.Rand, depth int) string {
	var parts []string
	maybe := func(n int, format string, a ...any) {
		if r.IntN(n) == 0 {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	maybe(2, `"type":%q`, []string{"string", "object", "array"}[r.IntN(3)])
	maybe(6, `"maximum":%d`, r.IntN(2))
	maybe(6, `"description":"%d"`, r.IntN(2))
	maybe(6, `"enum":["a","%d"]`, r.IntN(2))
	maybe(6, `"default":%d`, r.IntN(2))
	maybe(8, `"title":"%d"`, r.IntN(2))
	maybe(8, `"required":["%d"]`, r.IntN(2)) // the library writes several in an order by chance
	if depth > 0 {
		var inner []string
		for _, name := range []string{"a", "b", "c"} {
			if r.IntN(2) == 0 {
				inner = append(inner, fmt.Sprintf("%q:%s", name, random(r, depth-1)))
			}
		}
		parts = append(parts, `"properties":{`+strings.Join(inner, ",")+"}")
		maybe(4, `"items":%s`, random(r, depth-1))
		maybe(5, `"additionalProperties":%s`, random(r, depth-1))
		maybe(8, `"anyOf":[%s]`, random(r, depth-1))
		maybe(8, `"oneOf":[%s]`, random(r, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// What is left out of the comparison has no part in the library's answer.
func TestAgainstTheLibrary(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var d [2]safety.Definition
		for i := range d {
			var list []string
			for n, name := range []string{"v1", "v1beta1", "v2"} {
				if n > 0 && r.IntN(2) == 0 {
					continue
				}
				schema := random(r, 2)
				if i == 1 && r.IntN(2) == 0 { // a small change
					schema = random(rand.New(rand.NewPCG(seed, 2)), 2)
				} else if i == 0 && r.IntN(2) == 0 {
					schema = random(rand.New(rand.NewPCG(seed, 2)), 2)
				}
				list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":%s}}`, name,
					r.IntN(4) > 0, n == 0, schema))
			}
			d[i] = raw("[" + strings.Join(list, ",") + "]")
		}
		changes, err := j.Definition(t.Context(), d[0], d[1])
		if err != nil {
			t.Fatal(err)
		}
		got, want := sorted(lines(changes)), controller(t, d[0], d[1])
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s\n%s\ngot\n%s\nwant\n%s", seed, text(t, d[0]), text(t, d[1]), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(want) > 0 {
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("only %d of the upgrades are refused", refused)
	}
}
