package template_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

func TestBasic(t *testing.T) {
	got, err := render(t, `Schema: olm.template.basic
Entries:
- {schema: olm.package, name: a, defaultChannel: c}
- {schema: olm.bundle, image: "example.com/a:v1.1.0"}
- {schema: olm.channel, package: a, name: c, entries: [{name: a.v1.1.0, replaces: a.v1.0.0}, {name: a.v1.0.0}]}
- {Schema: olm.bundle, Image: "example.com/a:v1.0.0", name: "", properties: [], relatedImages: null}
- {schema: olm.deprecations, package: a, entries: [{reference: {schema: olm.channel, name: c}, message: m}]}
- {schema: custom, package: a, value: 1.0}
- {schema: elsewhere, big: 12345678901234567890}
`)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for b := range got.Blobs() {
		out.Write(declcfg.AppendJSON(nil, b, false))
		out.WriteString("\n")
		if b.Position() != (declcfg.Position{}) {
			t.Errorf("%s %q is said to be at %s", b.BlobSchema(), b.BlobName(), b.Position())
		}
	}
	want := `{"schema":"olm.package","name":"a","defaultChannel":"c"}
{"schema":"olm.channel","name":"c","package":"a","entries":[{"name":"a.v1.1.0","replaces":"a.v1.0.0"},{"name":"a.v1.0.0"}]}
{"schema":"olm.bundle","name":"a.v1.0.0","package":"a","image":"example.com/a:v1.0.0","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
{"schema":"olm.bundle","name":"a.v1.1.0","package":"a","image":"example.com/a:v1.1.0","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.1.0"}}]}
{"package":"a","schema":"custom","value":1.0}
{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.channel","name":"c"},"message":"m"}]}
{"big":12345678901234567890,"schema":"elsewhere"}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestBasicProblems(t *testing.T) {
	for _, c := range []struct {
		name, entries string
		want          []string
	}{
		{"no list", "entries: x", []string{"2: entries is a string, expected a list"}},
		{"fields of a whole bundle",
			"entries:\n- schema: olm.bundle\n  image: a/a:v1\n  name: x\n  package: a\n- schema: " +
				"olm.bundle\n  name: y\n",
			[]string{"3: unexpected fields present in basic template bundle: name, package",
				"7: unexpected fields present in basic template bundle: name"}},
		{"no image", "entries:\n- schema: olm.bundle\n- {schema: olm.bundle, image: \"\"}\n",
			[]string{"3: the bundle has no image", "4: the bundle has no image"}},
		{"an image that is a list", "entries:\n- schema: olm.bundle\n  image: [a]\n",
			[]string{"4: entries[0].image is a list, expected a string"}},
		{"blobs that are none",
			"entries:\n- {schema: olm.package, name: [x]}\n- {name: x}\n- 5\n- {schema: olm.channel, entries: [5]}\n",
			[]string{"5: entries[2] is a number, expected an object"}},
		{"blobs between others",
			"entries:\n- {schema: olm.package, name: a}\n- {}\n- {schema: olm.bundle, image: a/a:v1}\n- {schema: " +
				"olm.package, name: b}\n- {name: x}\n- {schema: olm.package, name: c}\n",
			[]string{"4: object '{}", `7: object '{"name":"x"}`}},
		{"misspelled fields of blobs",
			"entries:\n- {schema: olm.package, name: a, defaultChanel: c}\n- schema: olm.channel\n  name: " +
				"c\n  package: a\n  entries:\n  - name: a.v2\n    replace: a.v1\n- {schema: olm.chanel, name: d}\n",
			[]string{`3: unknown field "defaultChanel" in olm.package "a": did you mean "defaultChannel"?`,
				`9: unknown field "replace" in entries[0] of olm.channel "c": did you mean "replaces"?`,
				`10: unknown schema "olm.chanel": did you mean "olm.channel"?`}},
		{"a misspelled field of a bundle", "entries:\n- {schema: olm.bundle, imaeg: a/a:v1}\n",
			[]string{`3: unknown field "imaeg" in basic template bundle: did you mean "image"?`}},
		{"blobs that cannot be read",
			"entries:\n- {schema: olm.package, name: [x]}\n- {name: x}\n- {schema: olm.channel, name: c, " +
				"entries: [5]}\n",
			[]string{`3: olm.package: name is a list, expected a string`,
				`4: object '{"name":"x"}`, `5: olm.channel "c": entries[0] is a number, expected an object`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader("schema: olm.template.basic\n"+c.entries))
			wantProblems(t, err, c.want...)
		})
	}
}
