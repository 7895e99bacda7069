package filter_test

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Whatever is left out of whatever was kept, the rest is valid and has the same other bundles, and what was installed
// of it can be upgraded if something above it is there.
func TestWithoutAnything(t *testing.T) {
	done := 0
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		c, op := randomCatalog(r), randomOperator(r)
		before, err := filter.Apply(c, op, filter.Options{AutoDefaultChannel: true})
		if err != nil || before.Refused() {
			continue
		}
		done++
		gone := map[filter.BundleName]string{}
		var rest []string
		for _, b := range before.Catalog.Bundles {
			if r.Intn(3) == 0 {
				gone[filter.BundleName{Package: b.Package, Bundle: b.Name}] = "a test"
			} else {
				rest = append(rest, b.Name)
			}
		}
		got := before.Without(gone)
		if len(rest) == 0 {
			if len(gone) > 0 && !got.Refused() {
				t.Errorf("seed %d: an empty catalog is published", seed)
			}
			continue
		}
		if got.Refused() || got.Catalog.Validate() != nil {
			t.Errorf("seed %d: %v, %v", seed, got.Problems, got.Catalog.Validate())
		}
		var names []string
		for _, b := range got.Catalog.Bundles {
			names = append(names, b.Name)
		}
		if slices.Sort(names); !slices.Equal(names, sorted(rest)) {
			t.Errorf("seed %d: got %v, want %v", seed, names, rest)
		}
		checkWays(t, seed, before.Catalog, got.Catalog, gone)
	}
	if done < 150 {
		t.Errorf("only %d", done)
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// checkWays checks that a bundle that is left out is skipped or replaced if an entry that replaced it, or one above
// that, is kept.
func checkWays(t *testing.T, seed int64, before, after *declcfg.Catalog, gone map[filter.BundleName]string) {
	t.Helper()
	for _, ch := range before.Channels {
		i := slices.IndexFunc(after.Channels,
			func(c declcfg.Channel) bool { return c.Package == ch.Package && c.Name == ch.Name })
		if i < 0 {
			continue
		}
		reached := map[string]bool{}
		for _, e := range after.Channels[i].Entries {
			reached[e.Name], reached[e.Replaces] = true, true
			for _, s := range e.Skips {
				reached[s] = true
			}
		}
		for name := range gone {
			if name.Package != ch.Package || reached[name.Bundle] {
				continue
			}
			for _, e := range ch.Entries {
				if e.Replaces == name.Bundle && reached[e.Name] {
					t.Errorf("seed %d: %s of %s/%s has no way", seed, name.Bundle, ch.Package, ch.Name)
				}
			}
		}
	}
}

func TestWithout(t *testing.T) {
	full, err := filter.Apply(small(),
		imageset.Operator{Packages: []imageset.Package{{Name: "app", MinVersion: "1.0.0"},
			{Name: "db"}}}, filter.Options{})
	if err != nil || full.Refused() {
		t.Fatal(err)
	}
	name := func(pkg, bundle string) filter.BundleName { return filter.BundleName{Package: pkg, Bundle: bundle} }
	if full.Without(nil) != full {
		t.Error("nothing is left out, and the result changes")
	}
	middle := full.Without(map[filter.BundleName]string{name("app", "app.v1.1.0"): "absent"})
	stable := middle.Kept["app"].Channels["stable"]
	if e := stable[len(stable)-1]; middle.Refused() || e.Replaces != "app.v1.0.0" || !slices.Equal(e.Skips,
		[]string{"app.v1.1.0"}) || e.SkipRange != "<0.5.0" || len(full.Kept["app"].Bundles) != 3 {
		t.Errorf("got %+v, %v", stable, middle.Problems)
	}
	head := full.Without(map[filter.BundleName]string{name("app", "app.v2.0.0"): "absent",
		name("db", "db.v1.2.0"): "absent", name("db", "db.v2.0.0"): "absent"})
	if head.Refused() || head.Kept["db"] != nil || len(head.Kept["app"].Bundles) != 2 || head.Others != 1 {
		t.Errorf("got %+v, %v", head.Kept, head.Problems)
	}
	whole, err := filter.Apply(small(), imageset.Operator{Full: true}, filter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := whole.Without(map[filter.BundleName]string{name("db", "db.v1.0.0"): "x", name("db", "db.v1.2.0"): "x"})
	if w.WholeCatalog || w.Kept["db"].DefaultChannel != "beta" || strings.Join(w.Account.Packages(), " ") != "db" {
		t.Errorf("got %+v", w)
	}
}

// Bundles with images that cannot be mirrored are named, all of them, and the rest can be published.
func TestUnusableImages(t *testing.T) {
	c := small()
	for i, related := range []string{"r.example.com/x", "oci://x", "R/Y:v1", ""} {
		c.Bundles[i].RelatedImages = []declcfg.RelatedImage{{Name: "n", Image: related}, {Image: "r.example.com/b:v1"}}
	}
	r, err := filter.Apply(c, imageset.Operator{Packages: []imageset.Package{{Name: "app", MinVersion: "1.0.0"},
		{Name: "db", MinVersion: "1.0.0"}}}, filter.Options{})
	if err != nil || !r.Refused() || len(r.Unusable()) != 3 {
		t.Fatalf("%v %v", err, r.Problems)
	}
	failures, warnings := 0, 0
	for _, p := range r.Problems {
		switch p.Code {
		case filter.UnusableImage:
			failures++
		case filter.EmptyImage:
			warnings++
		}
	}
	if failures != 3 || warnings != 1 {
		t.Errorf("%v", r.Problems)
	}
	rest := r.Without(r.Unusable())
	if rest.Refused() || rest.Kept["app"] != nil || len(rest.Kept["db"].Bundles) != 3 {
		t.Errorf("got %+v %v", rest.Kept, rest.Problems)
	}
	images := rest.AllImages()
	if len(images) != 4 || images[0].Written != "r.example.com/db:v1.0.0" || !images[0].Bundle ||
		images[1].Written != "r.example.com/b:v1" || images[1].Bundle || len(images[1].Bundles) != 1 {
		t.Errorf("got %+v", images)
	}
}
