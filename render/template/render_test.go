package template_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/render/template"
)

// manyImages returns a basic template that names each of n images twice.
func manyImages(n int) string {
	var b strings.Builder
	b.WriteString("schema: olm.template.basic\nentries:\n")
	for i := range 2 * n {
		fmt.Fprintf(&b, "- {schema: olm.bundle, image: \"example.com/a:v1.0.%d\"}\n", i%n)
	}
	return b.String()
}

func TestEveryImageIsRenderedOnce(t *testing.T) {
	r := &registry{entered: make(chan struct{}, 30), wait: make(chan struct{})}
	go func() {
		for range 3 {
			<-r.entered
		}
		close(r.wait)
	}()
	c, err := parse(t, manyImages(30)).Render(t.Context(), template.RenderOptions{Render: r.render, Jobs: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Bundles) != 60 || len(r.calls) != 30 || r.most != 3 {
		t.Errorf("%d bundles of %d images, %d at once", len(c.Bundles), len(r.calls), r.most)
	}
	for image, n := range r.calls {
		if n != 1 {
			t.Errorf("%s was rendered %d times", image, n)
		}
	}
}

func TestEveryFailureIsTold(t *testing.T) {
	text := "schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: x/one}\n- {schema: olm.bundle, " +
		"image: \"x/a:v1.0.0\"}\n- {schema: olm.bundle, image: x/two}\n"
	_, err := render(t, text)
	wantProblems(t, err, `3: render reference "x/one": manifest unknown`,
		`5: render reference "x/two": manifest unknown`)

	// If a registry is unavailable, it is not asked for every image.
	down := errors.New("connection refused")
	calls := 0
	var mu sync.Mutex
	_, err = parse(t, manyImages(1000)).Render(t.Context(),
		template.RenderOptions{Jobs: 4, Render: func(context.Context, string) (*declcfg.Catalog, error) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return nil, down
		}})
	if !errors.Is(err, down) || calls < 20 || calls > 24 || !strings.Contains(err.Error(),
		"more images were not tried") {
		t.Errorf("%d calls: %v", calls, err)
	}
}

func TestWhatAnImageMustHold(t *testing.T) {
	tmpl := parse(t, "schema: olm.template.basic\nentries:\n- schema: olm.bundle\n  image: x/a:v1\n")
	for name, c := range map[string]struct {
		catalog *declcfg.Catalog
		want    string
	}{
		"nothing": {nil, `4: rendering "x/a:v1" resulted in 0 bundles, expected 1`},
		"empty":   {&declcfg.Catalog{}, `4: rendering "x/a:v1" resulted in 0 bundles, expected 1`},
		"two": {&declcfg.Catalog{Bundles: make([]declcfg.Bundle, 2)},
			`4: rendering "x/a:v1" resulted in 2 bundles, expected 1`},
		"a catalog": {&declcfg.Catalog{Bundles: make([]declcfg.Bundle, 1), Packages: make([]declcfg.Package, 1)},
			`4: rendering "x/a:v1" resulted in a catalog`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tmpl.Render(t.Context(),
				template.RenderOptions{Render: func(context.Context, string) (*declcfg.Catalog, error) {
					return c.catalog, nil
				}})
			wantProblems(t, err, c.want)
		})
	}
	_, err := tmpl.Render(t.Context(), template.RenderOptions{Render: func(context.Context, string) (*declcfg.Catalog, error) {
		panic("a bug")
	}})
	wantProblems(t, err, "4: internal error: a bug")
	if _, err := tmpl.Render(t.Context(), template.RenderOptions{}); err == nil {
		t.Error("images were rendered by nobody")
	}
}

func TestRenderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &registry{entered: make(chan struct{}, 100), wait: make(chan struct{})}
	go func() {
		<-r.entered
		cancel()
	}()
	_, err := parse(t, manyImages(100)).Render(ctx, template.RenderOptions{Render: r.render, Jobs: 2})
	var problems *template.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &problems) || len(r.calls) > 4 {
		t.Errorf("%d images: %v", len(r.calls), err)
	}
}

// A template may be rendered concurrently.
func TestConcurrentRendering(t *testing.T) {
	tmpl := parse(t, subsText(t, []declcfg.ChannelEntry{{Name: "a.v1.1.0", Replaces: "a.v1.0.0"}, {Name: "a.v1.0.0"}},
		"a.v1.0.0=1.0.1"))
	var wg sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := tmpl.Render(t.Context(), template.RenderOptions{Render: (&registry{}).render})
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = graph(c)
		}()
	}
	wg.Wait()
	for _, a := range answers {
		if a != answers[0] {
			t.Errorf("got\n%s\nand\n%s", a, answers[0])
		}
	}
}

// The level applies to all bundles; with compatibility, only to those from images.
func TestLevel(t *testing.T) {
	const csv = `{"kind":"ClusterServiceVersion","spec":{"description":"d"}}`
	whole := newBundle("a", "1.0.0", "example.com/a:v1.0.0")
	whole.Properties = append(whole.Properties, declcfg.NewBundleObject([]byte(csv)))
	text := "schema: olm.template.substitutes\nentries:\n- {schema: olm.package, name: a, defaultChannel: c}\n- " +
		"{schema: olm.channel, package: a, name: c, entries: [{name: a.v1.0.0}]}\n- " +
		string(declcfg.AppendJSON(nil, &whole, false)) +
		"\nsubstitutions: [{name: \"example.com/a:v1.0.1\", base: a.v1.0.0}]\n"
	r := &registry{csv: func(string) string { return csv }}
	for compat, want := range map[bool]string{
		false: "[olm.package olm.csv.metadata] [olm.package olm.csv.metadata]",
		true:  "[olm.package olm.bundle.object] [olm.package olm.csv.metadata]",
	} {
		c, err := parse(t, text).Render(t.Context(),
			template.RenderOptions{Render: r.render, Level: edit.LevelCSVMetadata, Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		types := make([][]string, 2)
		for i, b := range c.Bundles {
			for _, p := range b.Properties {
				types[i] = append(types[i], p.Type)
			}
		}
		if got := fmt.Sprint(types[0], " ", types[1]); strings.ReplaceAll(got, "  ", " ") != want {
			t.Errorf("compat %v: got %s, want %s", compat, got, want)
		}
	}
}
