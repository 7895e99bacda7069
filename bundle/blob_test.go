package bundle_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// properties returns the properties of a bundle's blob without its manifests, as "type value".
func properties(t testing.TB, files map[string]string) []string {
	t.Helper()
	var out []string
	for _, p := range blob(t, read(t, sound(files), bundle.ReadOptions{AnyProperties: true}), "").Properties {
		if p.Type != declcfg.PropertyBundleObject {
			out = append(out, p.Type+" "+string(p.Value))
		}
	}
	return out
}

func TestProperties(t *testing.T) {
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.g.io"},"spec":{"group":"g.io",
"names":{"kind":"A","plural":"as"},"versions":[{"name":"v1","schema":{"versions":[{"name":"no"}],"a":"\"]}"}},{"name":"v2"}]}}`
	const own = `olm.package {"packageName":"foo","version":"1.2.3"}`
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"the package", nil, []string{own}},
		{"a release in text", csvWith("  release: \"2.a\"\n"),
			[]string{`olm.package {"packageName":"foo","version":"1.2.3","release":"2.a"}`}},
		{"a release that is null", csvWith("  release: null\n"), []string{own}},
		{"APIs of CRDs that nobody owns", map[string]string{"manifests/crd.json": crd}, []string{
			`olm.gvk {"group":"g.io","kind":"A","version":"v1"}`, `olm.gvk {"group":"g.io","kind":"A","version":"v2"}`,
			own}},
		{"the version of an old CRD",
			map[string]string{"manifests/crd.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\nkind: " +
				"CustomResourceDefinition\nmetadata: {name: as.g.io}\n" +
				"spec: {group: g.io, names: {kind: A, plural: as}, version: v1}\n"},
			[]string{`olm.gvk {"group":"g.io","kind":"A","version":"v1"}`, own}},
		{"owned and required APIs", with(csvWith(`  customresourcedefinitions:
    owned: [{name: as.g.io, version: v1, kind: A}]
    required: [{name: bs.h.io, version: v1, kind: B}]
  apiservicedefinitions:
    owned: [{name: cs, group: i.io, version: v1, kind: C}]
    required: [{name: ds, group: j.io, version: v1, kind: D}]
`), "manifests/crd.json", crd), []string{
			`olm.gvk {"group":"g.io","kind":"A","version":"v1"}`, `olm.gvk {"group":"g.io","kind":"A","version":"v2"}`,
			`olm.gvk {"group":"i.io","kind":"C","version":"v1"}`,
			`olm.gvk.required {"group":"h.io","kind":"B","version":"v1"}`,
			`olm.gvk.required {"group":"j.io","kind":"D","version":"v1"}`, own}},
		{"dependencies of every type", map[string]string{"metadata/dependencies.yaml": `dependencies:
- {type: olm.package, value: {packageName: bar, version: ">=1.0.0 <2.0.0"}}
- {type: olm.gvk, value: {group: g.io, version: v1, kind: A}}
- {type: olm.label, value: {label: "a&b"}}
- {type: olm.constraint, value: {failureMessage: "<", cel: {rule: "true"}}}
`}, []string{`olm.constraint {"cel":{"rule":"true"},"failureMessage":"\u003c"}`,
			`olm.gvk.required {"group":"g.io","kind":"A","version":"v1"}`, `olm.label {"label":"a\u0026b"}`,
			own, `olm.package.required {"packageName":"bar","versionRange":">=1.0.0 <2.0.0"}`}},
		{"equal dependencies are kept, equal APIs are one",
			map[string]string{"metadata/dependencies.yaml": `dependencies:
- {type: olm.package, value: {packageName: bar, version: 1.0.0}}
- {type: olm.package, value: {packageName: bar, version: 1.0.0}}
- {type: olm.gvk, value: {group: g.io, version: v1, kind: A}}
- {type: olm.gvk, value: {group: g.io, version: v1, kind: A}}
`}, []string{`olm.gvk.required {"group":"g.io","kind":"A","version":"v1"}`, own,
				`olm.package.required {"packageName":"bar","versionRange":"1.0.0"}`,
				`olm.package.required {"packageName":"bar","versionRange":"1.0.0"}`}},
		{"a file of properties", map[string]string{"metadata/properties.yaml": `properties:
- {type: a, value: {z: 1.0, k: 1e3, x: 9007199254740993, w: <b>}}
- {type: a, value: {z: 1.0, k: 1e3, x: 9007199254740993, w: <b>}}
- {type: olm.gvk, value: {kind: A, group: g.io, version: v1}}
`}, []string{`a {"k":1000,"w":"\u003cb\u003e","x":9007199254740993,"z":1}`,
			`olm.gvk {"group":"g.io","kind":"A","version":"v1"}`, own}},
		{"properties in the annotation",
			csvWith("",
				`olm.properties: '[ {"type":"a", "value":{"z":1.0, "a":"<"}}, {"type":"a","value":{"z":1.0,"a":"<"}}, {"type":"b","value":null} ]'`),
			[]string{`a {"z":1.0,"a":"<"}`, `b null`, own}},
		{"a broken annotation", csvWith("", `olm.properties: '[{"type":'`), []string{own}},
		{"the package in the annotation",
			csvWith("", `olm.properties: '[{"type":"olm.package","value":{"packageName":"other","version":"2.0.0"}}]'`),
			[]string{`olm.package {"packageName":"other","version":"2.0.0"}`}},
		{"the same property twice", with(csvWith("", `olm.properties: '[{"type":"a","value":"1"}]'`),
			"metadata/properties.yaml", "properties: [{type: a, value: '1'}]"),
			[]string{`a "1"`, own}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := properties(t, test.files); !slices.Equal(got, test.want) {
				t.Errorf("properties\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestPropertiesThatCannotBeUnderstood(t *testing.T) {
	for name, text := range map[string]string{
		"olm.gvk":     "properties: [{type: olm.gvk, value: {group: 1}}]",
		"olm.package": "properties: [{type: olm.package, value: a}]",
	} {
		for _, o := range []bundle.ReadOptions{{}, {AnyProperties: true}} {
			_, err := bundle.Read(t.Context(), sound(map[string]string{"metadata/properties.yaml": text}), o)
			if !errors.Is(err, bundle.ErrInvalid) || !strings.Contains(err.Error(), "properties.yaml:1:") ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

func TestRelatedImages(t *testing.T) {
	const deployments = `  install:
    strategy: deployment
    spec:
      deployments:
      - name: a
        spec: {template: {spec: {containers: [{image: c}, {image: b}], initContainers: [{image: d}, {name: x}]}}}
      - name: b
        spec: {template: {spec: {containers: [{image: c}]}}}
`
	tests := []struct {
		name, spec, image string
		want              []declcfg.RelatedImage
	}{
		{"nothing", "", "", nil},
		{"the bundle", "", "i", []declcfg.RelatedImage{{Image: "i"}}},
		{"deployments", deployments, "", []declcfg.RelatedImage{{Image: "b"}, {Image: "c"}, {Image: "d"}}},
		{"a list", deployments + "  relatedImages: [{name: z, image: b}, {name: w, image: a}, {name: x, image: b}]\n",
			"i",
			[]declcfg.RelatedImage{{Name: "w", Image: "a"}, {Name: "z", Image: "b"}, {Name: "x", Image: "b"},
				{Image: "c"}, {Image: "d"}, {Image: "i"}}},
		{"the bundle in the list", "  relatedImages: [{name: me, image: i}]\n", "i",
			[]declcfg.RelatedImage{{Name: "me", Image: "i"}}},
		{"no install", "  install: null\n", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := read(t, sound(csvWith(test.spec)), bundle.ReadOptions{})
			if got := blob(t, b, test.image); !slices.Equal(got.RelatedImages, test.want) || got.Image != test.image {
				t.Errorf("image %q, related images %v, want %v", got.Image, got.RelatedImages, test.want)
			}
		})
	}
}

func TestWhatIsReadOfAClusterServiceVersion(t *testing.T) {
	b := read(t, sound(csvWith(`  replaces: foo.v1.2.2
  skips: [foo.v1.2.0, foo.v1.2.1]
  displayName: "Foo \"bar\""
  description: a & b
  icon: [{base64data: aGk=, mediatype: image/svg+xml}, {base64data: bm8=, mediatype: image/png}]
`, `olm.skipRange: ">=1.0.0 <1.2.3"`, "olm.substitutesFor: foo.v1.2.2")), bundle.ReadOptions{})
	c := b.CSV
	if c.Replaces != "foo.v1.2.2" || !slices.Equal(c.Skips, []string{"foo.v1.2.0", "foo.v1.2.1"}) ||
		c.SkipRange != ">=1.0.0 <1.2.3" || c.SubstitutesFor != "foo.v1.2.2" {
		t.Errorf("edges %q %q %q %q", c.Replaces, c.Skips, c.SkipRange, c.SubstitutesFor)
	}
	if c.DisplayName != `Foo "bar"` || c.Description != "a & b" || c.IconData != "aGk=" ||
		c.IconMediaType != "image/svg+xml" {
		t.Errorf("texts %q %q, icon %q %q", c.DisplayName, c.Description, c.IconData, c.IconMediaType)
	}
	if !json.Valid(c.Spec) || c.File != "manifests/csv.yaml" || c.Line != 1 {
		t.Errorf("spec %s of %s:%d", c.Spec, c.File, c.Line)
	}
}

// objects returns the manifests in the blob of a bundle with an additional one.
func objects(t *testing.T, name, manifest string) []string {
	t.Helper()
	var out []string
	for _, p := range blob(t, read(t, sound(map[string]string{"manifests/service.yaml": "", name: manifest}),
		bundle.ReadOptions{}), "").Properties {
		if p.Type != declcfg.PropertyBundleObject {
			continue
		}
		var v struct{ Data []byte }
		if err := json.Unmarshal(p.Value, &v); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(v.Data), `"ClusterServiceVersion"`) {
			out = append(out, string(v.Data))
		}
	}
	return out
}

func TestObjects(t *testing.T) {
	tests := []struct {
		name, file, manifest string
		want                 []string
	}{
		{"keys are sorted", "manifests/x.yaml", "kind: A\nb: 1\na: 2\n", []string{`{"a":2,"b":1,"kind":"A"}`}},
		{"what means something in HTML is escaped", "manifests/x.yaml", `{kind: A, "<k>": "a<b>&c\\ \" \n ü \u2028"}`,
			[]string{`{"\u003ck\u003e":"a\u003cb\u003e\u0026c\\ \" \n ü \u2028","kind":"A"}`}},
		{"fractions are as short as they can be", "manifests/x.yaml",
			"kind: A\na: [1.0, 10000., 1e3, 0.10, -0.0, .5, 1e22, 1e-7, 100000000000000000000.0, 1_000]\n",
			[]string{`{"a":[1,10000,1000,0.1,0,0.5,1e+22,1e-7,100000000000000000000,1000],"kind":"A"}`}},
		{"numbers that no float holds keep their digits", "manifests/x.yaml",
			"kind: A\na: [18446744073709551615, 3.14159265358979323846, 123456789012345678901234567890]\n",
			[]string{`{"a":[18446744073709551615,3.14159265358979323846,123456789012345678901234567890],"kind":"A"}`}},
		{"numbers in JSON", "manifests/x.json",
			`{"kind":"A","a":[1.0,1e3,-0,9007199254740993,1e400,true,false,null,-5e-1]}`,
			[]string{`{"a":[1,1000,0,9007199254740993,1e400,true,false,null,-0.5],"kind":"A"}`}},
		{"words of YAML 1.1", "manifests/x.yaml", "kind: A\nn: yes\nd: 2001-01-01\no: 010\n",
			[]string{`{"d":"2001-01-01","false":true,"kind":"A","o":8}`}},
		{"only the first document", "manifests/x.yaml", "kind: A\n---\nkind: B\n", []string{`{"kind":"A"}`}},
		{"JSON one after the other", "manifests/x.json", `{"kind":"A"}{"kind":"B"}`, []string{`{"kind":"A"}`}},
		{"a document behind comments", "manifests/x.yaml", "# c\n---\nkind: A\n", []string{`{"kind":"A"}`}},
		{"line ends of Windows", "manifests/x.yaml", "kind: A\r\na: 1\r\n", []string{`{"a":1,"kind":"A"}`}},
		{"a byte order mark", "manifests/x.yaml", "\ufeffkind: A\n", []string{`{"kind":"A"}`}},
		{"the second ClusterServiceVersion is passed over", "manifests/x.yaml", soundCSV, nil},
		{"no kind", "manifests/x.yaml", "a: b", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := objects(t, test.file, test.manifest); !slices.Equal(got, test.want) {
				t.Errorf("objects\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestObjectsAreSortedByTheirBase64(t *testing.T) {
	b := read(t, sound(map[string]string{"manifests/a.yaml": "kind: Z", "manifests/z.yaml": "kind: A"}),
		bundle.ReadOptions{})
	var data []string
	for i, p := range blob(t, b, "").Properties {
		if p.Type == declcfg.PropertyBundleObject {
			data = append(data, string(p.Value))
		} else if i > 0 {
			t.Errorf("%s behind a manifest", p.Type)
		}
	}
	first := `{"data":"` + base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"operators`))[:20]
	if !slices.IsSorted(data) || len(data) != 4 || !strings.HasPrefix(data[0], first) {
		t.Errorf("manifests %q", data)
	}
}

// TestBlobsShareNothingWithTheirBundle builds a blob again after the first one was overwritten.
func TestBlobsShareNothingWithTheirBundle(t *testing.T) {
	b := read(t,
		sound(with(csvWith("  relatedImages: [{name: a, image: b}]\n", `olm.properties: '[{"type":"a","value":"1"}]'`),
			"metadata/p.yaml", "properties: [{type: b, value: {c: d}}]")), bundle.ReadOptions{})
	first := blob(t, b, "i")
	want := string(rendered(t, first, declcfg.FormatJSON))
	for _, p := range first.Properties {
		clear(p.Value)
	}
	clear(first.RelatedImages)
	if got := string(rendered(t, blob(t, b, "i"), declcfg.FormatJSON)); got != want {
		t.Errorf("the second blob is\n%s\nthe first was\n%s", got, want)
	}
}
