package template_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/render/template"
)

// registry renders images HOST/PACKAGE:vVERSION to the bundle PACKAGE.vVERSION of that package and version, with "_" in
// place of "+", which a tag cannot contain. It counts calls.
type registry struct {
	csv func(name string) string // the ClusterServiceVersion of a bundle; none if nil

	mu           sync.Mutex
	calls        map[string]int
	active, most int
	entered      chan struct{} // receives a value from each waiting call
	wait         chan struct{} // rendering waits until it is closed, unless nil
}

func (r *registry) render(ctx context.Context, image string) (*declcfg.Catalog, error) {
	r.mu.Lock()
	if r.calls == nil {
		r.calls = map[string]int{}
	}
	r.calls[image]++
	r.active++
	r.most = max(r.most, r.active)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.active--
	}()
	if r.wait != nil {
		r.entered <- struct{}{}
		select {
		case <-r.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	pkg, version, ok := strings.Cut(image[strings.Index(image, "/")+1:], ":v")
	if !ok {
		return nil, fmt.Errorf("render reference %q: manifest unknown", image)
	}
	b := newBundle(pkg, strings.ReplaceAll(version, "_", "+"), image)
	if r.csv != nil {
		b.Properties = append(b.Properties, declcfg.NewBundleObject([]byte(r.csv(b.Name))))
	}
	return &declcfg.Catalog{Bundles: []declcfg.Bundle{b}}, nil
}

func newBundle(pkg, version, image string) declcfg.Bundle {
	p, err := declcfg.NewProperty(declcfg.PropertyPackage, property.Package{PackageName: pkg, Version: version})
	if err != nil {
		panic(err)
	}
	return declcfg.Bundle{Name: pkg + ".v" + version, Package: pkg, Image: image, Properties: []declcfg.Property{p}}
}

func parse(t testing.TB, text string) *template.Template {
	t.Helper()
	tmpl, err := template.ParseOptions{Name: "t.yaml"}.Parse(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func render(t testing.TB, text string) (*declcfg.Catalog, error) {
	t.Helper()
	return parse(t, text).Render(t.Context(), template.RenderOptions{Render: (&registry{}).render})
}

// graph formats channels: one line per channel and one per entry.
func graph(c *declcfg.Catalog) string {
	var b strings.Builder
	for _, p := range c.Packages {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.DefaultChannel)
	}
	for _, ch := range c.Channels {
		b.WriteString(ch.Name + "\n")
		for _, e := range ch.Entries {
			b.WriteString("  " + e.Name)
			if e.Replaces != "" {
				b.WriteString(" <- " + e.Replaces)
			}
			if len(e.Skips) > 0 {
				b.WriteString(" skips " + strings.Join(e.Skips, " "))
			}
			if e.SkipRange != "" {
				b.WriteString(" range " + e.SkipRange)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// wantProblems compares the problems of an error, each as LINE: MESSAGE; a message may be a prefix.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var e *template.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %q", err, want)
	}
	var got []string
	for _, p := range e.Problems {
		got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Text))
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// semverText returns a semver template as JSON; the keys of lists are archetypes.
func semverText(t testing.TB, options map[string]any, lists map[string][]string) string {
	t.Helper()
	doc := map[string]any{"schema": "olm.semver"}
	for k, v := range options {
		doc[k] = v
	}
	for archetype, images := range lists {
		items := []map[string]string{}
		for _, image := range images {
			if !strings.Contains(image, "/") {
				image = "example.com/a:v" + image
			}
			items = append(items, map[string]string{"image": image})
		}
		doc[archetype] = map[string]any{"bundles": items}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
