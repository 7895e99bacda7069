package safety

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// upgrades returns the definitions of recorded bundles, for each package by version.
func upgrades(t testing.TB) map[string][][]upgrade.Manifest {
	t.Helper()
	out := map[string][][]upgrade.Manifest{}
	files := recorded.Archive(t, "../../testdata/olmv1/render.tar.zst")
	last := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		const kind = "\nkind: CustomResourceDefinition\n"
		parts := strings.Split(name, "/") // bundles/PACKAGE/VERSION/manifests/FILE
		if path.Ext(name) != ".yaml" || len(parts) != 5 || !strings.Contains("\n"+string(files[name]), kind) {
			continue
		}
		text, err := yaml.YAMLToJSON(files[name])
		if err != nil {
			continue
		}
		of := parts[1]
		if bundle := path.Dir(name); bundle != last {
			out[of], last = append(out[of], nil), bundle
		}
		i := len(out[of]) - 1
		object := upgrade.Object{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: parts[4]}
		out[of][i] = append(out[of][i], upgrade.Manifest{Object: object, JSON: text})
	}
	return out
}

// readAlike compares a definition that is read into a pool with what Kubernetes decodes, and reports whether it was read.
func readAlike(p *pool, text []byte) (bool, error) {
	got := p.read(text)
	if got == nil {
		return false, nil
	}
	want, err := convert[apiextensionsv1.CustomResourceDefinition](text)
	if err != nil {
		return true, fmt.Errorf("Kubernetes' decoder refuses it: %w", err)
	}
	for _, v := range want.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			strip(v.Schema.OpenAPIV3Schema)
		}
	}
	if !reflect.DeepEqual(got, want) {
		return true, fmt.Errorf("it is\n%v\nwant\n%v", got, want)
	}
	return true, nil
}

// Every recorded definition is read into a pool, and is what Kubernetes decodes.
func TestReadRecorded(t *testing.T) {
	p, all := newPool(), 0
	for of, versions := range upgrades(t) {
		for _, m := range slices.Concat(versions...) {
			if ok, err := readAlike(p, m.JSON); err != nil || !ok {
				t.Errorf("%s: %s: %v, %v", of, m.Name, ok, err)
			}
			all++
		}
	}
	if all < 200 {
		t.Errorf("%d definitions", all)
	}
}

// What is read into a pool is what Kubernetes decodes, whatever is in it.
func FuzzRead(f *testing.F) {
	for _, schema := range []string{
		`{}`, `null`, `[]`, `{"type":null}`, `{"type":1}`, `{"Type":"string","TYPE":"a","type":"b"}`,
		`{"description":"a","oneOf":[{"description":"b"}]}`, `{"description":"a","oneOf":[]}`, `{"description":1}`,
		`{"description":null,"properties":{"a":{"description":"b"},"description":{"type":"string"}}}`,
		`{"properties":{}}`, `{"properties":null}`, `{"properties":{"a":null}}`, `{"properties":{"a":{},"a":{"type":"b"}}}`,
		`{"properties":{"a\u003c\"":{"type":"a\u003c\ud800"}}}`, `{"\u0070roperties":{"a":{"description":"b"}}}`,
		`{"items":{"description":"a","Items":{},"items":{"default":1.0,"maximum":1,"maxLength":2.0}}}`,
		`{"items":{"type":"a"},"items":[{"type":"b"}]}`, `{"items":[{"description":"a"}]}`, `{"items":true}`,
		`{"additionalProperties":{"description":"a","properties":{"b":{"description":"c"}}}}`,
		`{"additionalProperties":true}`, `{"additionalProperties":false,"additionalItems":{"description":"a"}}`,
		`{"default":{"b":1.50,"a":1e2},"enum":["a",null,"<"],"required":[],"x-kubernetes-validations":[{"rule":"a"}]}`,
		`{"items":{"properties":{"a\u0022":{}}}}`, `{"additionalProperties":{"properties":{"a":null}}}`,
		`{"allOf":[{"properties":{"a":{"description":"b","items":{}}}}],"not":{"items":{"type":"c"}}}`,
	} {
		f.Add([]byte(schema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		text := fmt.Appendf(nil, `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":%s}},{"schema":{}},`+
			`{"name":"v2","schema":{"openAPIV3Schema":{"type":"object","properties":{"a":%[1]s}}}}]}}`, schema)
		const other = `{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{},"additionalProperties":{"properties":{}}}}}]}}`
		p := newPool()
		for _, one := range []string{string(text), string(text), other} { // the second time all is in the pool
			if ok, err := readAlike(p, []byte(one)); err != nil || !ok && one == other {
				t.Errorf("%s: %v, %v", one, ok, err)
			}
		}
	})
}

// What is said of an upgrade between recorded bundles does not depend on how much of it is decoded: all, if a definition is
// nested too deep.
func TestCompareRecorded(t *testing.T) {
	deep := []byte(strings.Repeat("[", 120) + strings.Repeat("]", 120) + "}")
	whole := func(all []upgrade.Manifest) (out []upgrade.Manifest) {
		for _, m := range all {
			m.JSON = slices.Concat(m.JSON[:len(m.JSON)-1], []byte(`,"deep":`), deep)
			out = append(out, m)
		}
		return out
	}
	changed := 0
	for of, versions := range upgrades(t) {
		for i := range len(versions) - 1 {
			got, err := upgrade.Compare(t.Context(), versions[i], versions[i+1], nil)
			want, err2 := upgrade.Compare(t.Context(), whole(versions[i]), whole(versions[i+1]), nil)
			if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v\nwant\n%+v, %v", of, got, err, want, err2)
			}
			changed += len(got.Definitions)
		}
	}
	if changed < 50 {
		t.Errorf("%d definitions change", changed)
	}
}

// The versions of the packages with the largest recorded definitions, each compared with the one before.
func BenchmarkUpgrades(b *testing.B) {
	all := upgrades(b)
	for b.Loop() {
		judge, err := NewJudge()
		if err != nil {
			b.Fatal(err)
		}
		for _, of := range []string{"aerospike-kubernetes-operator", "cass-operator-community", "datadog-operator",
			"loki-operator", "verticadb-operator"} {
			for i := range len(all[of]) - 1 {
				if _, err := upgrade.Compare(b.Context(), all[of][i], all[of][i+1], judge.Refused); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
