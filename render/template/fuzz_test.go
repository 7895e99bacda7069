package template_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

// Any input gives a template that can be rendered, or problems with lines; and a rendered catalog can be written,
// converted and rendered again.
func FuzzTemplate(f *testing.F) {
	files, err := filepath.Glob("../../testdata/templates/templates/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 10_000 {
			f.Add(text)
		}
	}
	f.Add([]byte(semverText(f, map[string]any{"generateMajorChannels": true},
		map[string][]string{"stable": {"1.0.0", "1.1.0"}, "fast": {"1.0.0_x"}})))
	f.Add([]byte(subsText(f, []declcfg.ChannelEntry{{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}},
		"a.v1.0.0=1.0.1")))
	f.Add([]byte("schema: olm.template.basic\nentries: &e\n- {schema: olm.bundle, image: x/a:v1.0.0}\nentries2: *e\n"))
	f.Add(
		[]byte(
			"schema: olm.template.basic\nentries:\n- {schema: olm.package, name: a, defaultChannel: x}\n- {schema: " +
				"olm.epeadcrtions, package: a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, compat := range []bool{false, true} {
			tmpl, err := template.ParseOptions{Name: "t", Compat: compat,
				Limits: template.Limits{MaxSize: 1 << 20, MaxImages: 100}}.Parse(t.Context(), bytes.NewReader(text))
			if err == nil {
				var c *declcfg.Catalog
				c, err = tmpl.Render(t.Context(),
					template.RenderOptions{Render: (&registry{}).render, Compat: compat,
						Level: "bundle-object-to-csv-metadata"})
				if err == nil {
					again(t, c, compat)
					continue
				}
			}
			var problems *template.Error
			if !errors.As(err, &problems) {
				continue // a bundle of the template that cannot be migrated
			}
			// YAML has several line breaks, and may report the line after the end
			lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 2
			if problems.OpmMessage() == "" || len(problems.Problems) == 0 {
				t.Errorf("no message in %v", err)
			}
			for _, p := range problems.Problems {
				if p.Text == "" || p.Line < 1 || p.Line > lines {
					t.Errorf("line %d of %d: %q", p.Line, lines, p.Text)
				}
			}
		}
	})
}

// again converts a catalog to a basic template and renders that with the same compatibility: a schema that is almost
// one of OLM's is an error in a template, but opm accepts it.
func again(t *testing.T, c *declcfg.Catalog, compat bool) {
	var doc bytes.Buffer
	if (template.ConvertOptions{Type: template.Basic, Format: declcfg.FormatYAML}).Convert(&doc, c) != nil {
		return // content that a template cannot represent
	}
	tmpl, err := template.ParseOptions{Name: "again", Compat: compat}.Parse(t.Context(), bytes.NewReader(doc.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, doc.Bytes())
	}
	if _, err := tmpl.Render(t.Context(),
		template.RenderOptions{Render: (&registry{}).render, Compat: compat}); err != nil {
		// A complete bundle in a template may have an image that cannot be rendered.
		var problems *template.Error
		if !errors.As(err, &problems) {
			t.Fatalf("%v\n%s", err, doc.Bytes())
		}
	}
}
