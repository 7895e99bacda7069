package template_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render/template"
)

// answers are the commands recorded for every template.
var answers = []struct {
	file   string
	typed  bool // the type was given
	wrong  bool // the given type was wrong
	level  edit.Level
	format declcfg.Format
}{
	{file: "auto.yaml", format: declcfg.FormatYAML},
	{file: "typed.json", typed: true, format: declcfg.FormatJSON},
	{file: "csvmeta.yaml", typed: true, level: edit.LevelCSVMetadata, format: declcfg.FormatYAML},
	{file: "wrongtype.yaml", typed: true, wrong: true, format: declcfg.FormatYAML},
}

// imageRenderer renders the bundle in an image.
type imageRenderer = func(ctx context.Context, image string) (*declcfg.Catalog, error)

// typeOf returns the type under which a recorded template was rendered.
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

// answer renders a template as a command does and returns the output and the error message.
func answer(t *testing.T, text []byte, typ template.Type, level edit.Level, format declcfg.Format,
	render imageRenderer, compat bool) (string, error) {
	t.Helper()
	tmpl, err := template.ParseOptions{Type: typ, Name: "t.yaml", Compat: compat}.Parse(t.Context(), bytes.NewReader(text))
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

// recordedCases compares every recorded answer of a collection and returns their number.
func recordedCases(t *testing.T, c recorded.Collection, render imageRenderer) (n int) {
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
					t.Errorf("got %d bytes, want %d; they differ from byte %d on", len(got), len(want),
						differ(got, want))
				}
				if name == "sub-converted" && a.level != "" {
					return // opm does not migrate bundles in the template
				}
				if strict, err := answer(t, text, typ, a.level, a.format, render, false); err != nil || strict != got {
					t.Errorf("without compatibility: %v", err)
				}
			})
		}
	}
	return n
}

// compareError compares the message with the recorded one, without messages of the network.
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

// Compare with every recorded answer of opm to templates.
func TestRecordedTemplates(t *testing.T) {
	c := recorded.All(t)
	n := recordedCases(t, c, imagesOf(t, testregistry.Recorded(t)))
	if n != 104 {
		t.Errorf("%d answers were compared", n)
	}
}

// The part of them in testdata.
func TestTemplates(t *testing.T) {
	if n := recordedCases(t, part, imagesOf(t, partRegistry(t))); n != 46 {
		t.Errorf("%d answers were compared", n)
	}
}

const part recorded.Collection = "../../testdata/templates"

// partRegistry starts a registry with the images of that part.
func partRegistry(t *testing.T) *testregistry.Registry {
	t.Helper()
	files, err := testregistry.ReadTar(filepath.Join(string(part), "images.oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	r := testregistry.New(t)
	r.AddLayout(t, files)
	return r
}

// imagesOf renders the bundles in the images of a registry.
func imagesOf(t *testing.T, r *testregistry.Registry) imageRenderer {
	t.Helper()
	yes := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{
			SkipTLSVerify: &yes, PlainHTTP: true, RegistriesConf: r.RegistriesConf(t, testregistry.RecordedHost),
		}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	var known sync.Map // the same bundles are in many templates
	return func(ctx context.Context, ref string) (*declcfg.Catalog, error) {
		if b, ok := known.Load(ref); ok {
			return &declcfg.Catalog{Bundles: []declcfg.Bundle{b.(declcfg.Bundle)}}, nil
		}
		b, err := renderImage(ctx, client, ref)
		if err != nil {
			return nil, fmt.Errorf("render reference %q: %w", ref, err)
		}
		known.Store(ref, *b)
		return &declcfg.Catalog{Bundles: []declcfg.Bundle{*b}}, nil
	}
}

func renderImage(ctx context.Context, client *images.Client, ref string) (*declcfg.Bundle, error) {
	image, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return nil, err
	}
	defer image.Close()
	labels := image.Config.Config.Labels
	tree, err := image.Extract(ctx, bundle.Paths(labels), images.ExtractOptions{})
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	b, err := bundle.Read(ctx, tree, bundle.ReadOptions{Labels: labels})
	if err != nil {
		return nil, err
	}
	return b.Blob(ref)
}

// A rendered catalog is the same after conversion to a template and rendering.
func TestRoundTrip(t *testing.T) { roundTrips(t, part, imagesOf(t, partRegistry(t)), 3) }

func TestRecordedRoundTrips(t *testing.T) {
	roundTrips(t, recorded.All(t), imagesOf(t, testregistry.Recorded(t)), 15)
}

func roundTrips(t *testing.T, c recorded.Collection, render imageRenderer, want int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(string(c), "golden-templates", "*", "typed.json*"))
	if err != nil || len(files) < want {
		t.Fatalf("%d catalogs (%v)", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		text := c.File(t, "golden-templates/"+name+"/typed.json")
		for _, typ := range []template.Type{template.Basic, template.Substitutes} {
			if typ == template.Basic && name == "sub-two" {
				continue // its bundles differ from those of the images
			}
			for _, format := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
				doc := convert(t, load(t, text), typ, format)
				got, err := answer(t, []byte(doc), "", "", declcfg.FormatJSON, render, false)
				if err != nil || got != string(text) {
					t.Errorf("%s: %s template as %s: %v", name, typ, format, err)
				}
			}
		}
	}
}
