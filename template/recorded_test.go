package template_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/template"
)

// answers are the commands that were recorded for every template.
var answers = []struct {
	file   string
	typed  bool // the type was named
	wrong  bool // it was the wrong one
	level  edit.Level
	format declcfg.Format
}{
	{file: "auto.yaml", format: declcfg.FormatYAML},
	{file: "typed.json", typed: true, format: declcfg.FormatJSON},
	{file: "csvmeta.yaml", typed: true, level: edit.LevelCSVMetadata, format: declcfg.FormatYAML},
	{file: "wrongtype.yaml", typed: true, wrong: true, format: declcfg.FormatYAML},
}

// typeOf is the type under which a recorded template was rendered.
func typeOf(name string, wrong bool) template.Type {
	kind, _, _ := strings.Cut(name, "-")
	switch {
	case wrong && kind == "basic":
		return template.Semver
	case wrong, kind == "basic":
		return template.Basic
	case kind == "sub":
		return template.Substitutes
	}
	return template.Semver
}

// answer renders a template as a command does: it returns the output, and the message of the error.
func answer(t *testing.T, text []byte, typ template.Type, level edit.Level, format declcfg.Format, render template.RenderFunc, compat bool) (string, error) {
	t.Helper()
	tmpl, err := template.Parse(t.Context(), bytes.NewReader(text), template.ParseOptions{Type: typ, Name: "t.yaml", Compat: compat})
	if err != nil {
		return "", err
	}
	c, err := tmpl.Render(t.Context(), template.RenderOptions{Render: render, Level: level, Compat: compat})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := c.Write(&out, format); err != nil {
		t.Fatal(err)
	}
	return out.String(), nil
}

// recordedCases runs every recorded answer of a collection, and returns how many there were.
func recordedCases(t *testing.T, c recorded.Collection, render template.RenderFunc) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(string(c), "templates", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s (%v)", c, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			golden := "golden-templates/" + name + "/" + a.file
			stderr := strings.TrimSuffix(golden, filepath.Ext(golden)) + ".stderr"
			if !c.Has(golden) && !c.Has(stderr) {
				continue
			}
			n++
			t.Run(name+"/"+a.file, func(t *testing.T) {
				typ := template.Type("")
				if a.typed {
					typ = typeOf(name, a.wrong)
				}
				got, err := answer(t, text, typ, a.level, a.format, render, true)
				if c.Has(stderr) {
					compareError(t, err, string(c.File(t, stderr)))
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := string(c.File(t, golden)); got != want {
					t.Errorf("got %d bytes, want %d; they differ from byte %d on", len(got), len(want), differ(got, want))
				}
				if name == "sub-converted" && a.level != "" {
					return // opm leaves what the template holds as it is
				}
				if strict, err := answer(t, text, typ, a.level, a.format, render, false); err != nil || strict != got {
					t.Errorf("without compatibility: %v", err)
				}
			})
		}
	}
	return n
}

// compareError compares the message with the recorded one. What the network says is not compared.
func compareError(t *testing.T, err error, stderr string) {
	t.Helper()
	want, _, _ := strings.Cut(strings.TrimPrefix(stderr, "Error: "), "\nUsage:")
	var problems *template.Error
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want %s", err, want)
	}
	if known, _, ok := strings.Cut(want, ": initializing source"); ok {
		if !strings.HasPrefix(problems.OpmMessage(), known) {
			t.Errorf("got %s, want %s", problems.OpmMessage(), known)
		}
		return
	}
	if problems.OpmMessage() != want {
		t.Errorf("got %s\nwant %s", problems.OpmMessage(), want)
	}
}

func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Every answer that opm gave to the recorded templates.
func TestRecordedTemplates(t *testing.T) {
	c := recorded.All(t)
	t.Logf("%d answers", recordedCases(t, c, bundlesOfAnswers(t, c)))
}

// bundlesOfAnswers gives the bundles that are in the recorded answers.
func bundlesOfAnswers(t *testing.T, c recorded.Collection) template.RenderFunc {
	t.Helper()
	bundles := map[string]declcfg.Bundle{}
	files, err := filepath.Glob(filepath.Join(string(c), "golden-templates", "*", "typed.json*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := "golden-templates/" + filepath.Base(filepath.Dir(file)) + "/typed.json"
		catalog, err := declcfg.Read(t.Context(), bytes.NewReader(c.File(t, name)), name, declcfg.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range catalog.Bundles {
			if b.HasObjects {
				bundles[b.Image] = b
			}
		}
	}
	return func(_ context.Context, image string) (*declcfg.Catalog, error) {
		b, ok := bundles[image]
		if !ok {
			return nil, fmt.Errorf("render reference %q: failed to pull image %q: manifest unknown", image, image)
		}
		return &declcfg.Catalog{Bundles: []declcfg.Bundle{b}}, nil
	}
}
