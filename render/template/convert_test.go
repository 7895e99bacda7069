package template_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

func load(t testing.TB, text []byte) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Read(t.Context(), bytes.NewReader(text), "c.yaml", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func convert(t testing.TB, c *declcfg.Catalog, typ template.Type, format declcfg.Format) string {
	t.Helper()
	var out bytes.Buffer
	if err := (template.ConvertOptions{Type: typ, Format: format}).Convert(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// opm writes an additional line at the end of YAML.
func TestRecordedConversions(t *testing.T) {
	text, err := os.ReadFile("../../testdata/fbc/mini/ecr-secret-operator/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, text)
	for typ, file := range map[template.Type]string{template.Basic: "convert-basic.yaml",
		template.Substitutes: "convert-substitutes.yaml"} {
		got, want := convert(t, c, typ, declcfg.FormatYAML)+"\n", string(part.File(t, "golden-fbc/mini/"+file))
		if got != want {
			t.Errorf("%s: got %d bytes, want %d; they differ from byte %d on", typ, len(got), len(want),
				differ(got, want))
		}
	}
}

func TestConvertJSON(t *testing.T) {
	c := load(t, []byte(`{"schema":"olm.package","name":"a","defaultChannel":"c","icon":null}
{"schema":"olm.channel","name":"c","package":"a","entries":[{"name":"a.v1.0.0"}]}
{"schema":"olm.bundle","name":"a.v1.0.0","package":"a","image":"x/a<b","properties":[{"type":"n","value":1.0}]}
{"schema":"olm.deprecations","package":"a","entries":[]}
{"schema":"custom","value":{}}`))
	want := `{
    "schema": "olm.template.basic",
    "entries": [
        {
            "schema": "olm.package",
            "name": "a",
            "defaultChannel": "c"
        },
        {
            "schema": "olm.channel",
            "name": "c",
            "package": "a",
            "entries": [
                {
                    "name": "a.v1.0.0"
                }
            ]
        },
        {
            "schema": "olm.bundle",
            "image": "x/a<b"
        },
        {
            "schema": "olm.deprecations",
            "package": "a",
            "entries": []
        },
        {
            "schema": "custom",
            "value": {}
        }
    ]
}
`
	if got := convert(t, c, template.Basic, declcfg.FormatJSON); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := convert(t, &declcfg.Catalog{}, template.Substitutes,
		declcfg.FormatYAML); got != "---\nentries: []\nschema: olm.template.substitutes\nsubstitutions: []\n" {
		t.Errorf("nothing became %s", got)
	}
}

// A catalog that a template cannot represent is refused, and nothing is written.
func TestConvertLosesNothing(t *testing.T) {
	text := "schema: olm.package\nname: a\n---\nschema: olm.bundle\npackage: a\nname: x\n---\nschema: " +
		"olm.bundle\npackage: a\nname: w\nimage: i/w\nnote: n\n---\nschema: olm.channel\nname: lost\n" +
		"---\nschema: olm.package\n---\nschema: olm.bundle\nname: z\nimage: i/z\n---\nschema: olm.deprecations\n"
	var out bytes.Buffer
	var warned []string
	err := template.ConvertOptions{Type: template.Basic, Format: declcfg.FormatYAML,
		Warn: func(at declcfg.Position, text string) { warned = append(warned, at.String()+": "+text) }}.Convert(&out, load(t, []byte(text)))
	wantProblems(t, err, `4: bundle "x" has no image: a basic template has nothing else of a bundle`,
		`14: channel "lost" has no package`, "17: the package has no name",
		`19: bundle "z" has no package`, "23: the deprecations have no package")
	if out.Len() > 0 {
		t.Errorf("wrote %s", out.String())
	}
	if len(warned) != 1 || warned[0] != `c.yaml:8: bundle "w" has fields that its image will not bring back: note` {
		t.Errorf("warned %q", warned)
	}
	// A substitutes template can contain a bundle without an image.
	if err := (template.ConvertOptions{Type: template.Substitutes, Format: declcfg.FormatYAML}).Convert(&out, load(t, []byte(text[:strings.Index(text, "---\nschema: olm.channel")]))); err != nil {
		t.Error(err)
	}
	for _, o := range []template.ConvertOptions{{Type: template.Semver, Format: declcfg.FormatYAML},
		{Type: "x", Format: declcfg.FormatYAML}, {Type: template.Basic, Format: "xml"}} {
		var problems *template.Error
		if err := o.Convert(&out, &declcfg.Catalog{}); err == nil || errors.As(err, &problems) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
