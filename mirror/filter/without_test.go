package filter_test

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Whatever is left out of whatever was kept, the rest is valid and has the same other bundles, and what was installed
// of it can be upgraded if what replaced it is there.
func TestWithoutAnything(t *testing.T) {
	done := 0
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		c, op := randomCatalog(r), randomOperator(r)
		before, err := filter.Options{AutoDefaultChannel: true}.Apply(c, op)
		if err != nil || before.Refused() {
			continue
		}
		var gone []edit.Name
		var rest []string
		for _, b := range before.Catalog.Bundles {
			if r.Intn(3) == 0 {
				gone = append(gone, edit.Name{Package: b.Package, Bundle: b.Name})
			} else {
				rest = append(rest, b.Name)
			}
		}
		if len(rest) == 0 {
			continue
		}
		done++
		got, err := before.Without(gone, "a test")
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if err := got.Catalog.Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		var names []string
		for _, b := range got.Catalog.Bundles {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		slices.Sort(rest)
		if !slices.Equal(names, rest) {
			t.Errorf("seed %d: got %v, want %v", seed, names, rest)
		}
		checkWays(t, seed, before.Catalog, got.Catalog, gone)
	}
	if done < 150 {
		t.Errorf("only %d", done)
	}
}

// checkWays checks that a bundle that is left out is skipped or replaced if an entry that replaced it is kept.
func checkWays(t *testing.T, seed int64, before, after *declcfg.Catalog, gone []edit.Name) {
	t.Helper()
	for _, ch := range before.Channels {
		i := slices.IndexFunc(after.Channels,
			func(c declcfg.Channel) bool { return c.Package == ch.Package && c.Name == ch.Name })
		if i < 0 {
			continue
		}
		reached, there := map[string]bool{}, map[string]bool{}
		for _, e := range after.Channels[i].Entries {
			there[e.Name], reached[e.Replaces] = true, true
			for _, s := range e.Skips {
				reached[s] = true
			}
		}
		for _, name := range gone {
			for _, e := range ch.Entries {
				if name.Package == ch.Package && e.Replaces == name.Bundle && there[e.Name] && !reached[name.Bundle] {
					t.Errorf("seed %d: %s of %s/%s has no way", seed, name.Bundle, ch.Package, ch.Name)
				}
			}
		}
	}
}

// A bundle without an image and without manifests cannot be published, nor can an image that is no pull spec for
// others.
func TestBundleWithoutImage(t *testing.T) {
	for _, image := range []string{"", "HOST/x:v1"} {
		c := small()
		c.Bundles[2].Image = image
		r, err := filter.Options{}.Apply(c, app(imageset.Package{}))
		if err != nil || !r.Refused() {
			t.Errorf("%q: %v %v", image, err, r)
		}
	}
}

// Images that cannot be mirrored are named, with all bundles that name them.
func TestUnusableImages(t *testing.T) {
	c := small()
	for i, related := range []string{"r.example.com/x", "oci://x", "R/Y:v1", ""} {
		c.Bundles[i].RelatedImages = []declcfg.RelatedImage{{Name: "n", Image: related}, {Image: "r.example.com/b:v1"}}
	}
	r, err := filter.Options{}.Apply(c, imageset.Operator{Packages: []imageset.Package{
		{Name: "app", MinVersion: "1.0.0"}, {Name: "db", MinVersion: "1.0.0"}}})
	if err != nil || r.Refused() {
		t.Fatalf("%v %v", err, r.Problems)
	}
	codes := map[string]int{}
	for _, p := range r.Problems {
		codes[p.Code]++
	}
	if codes[filter.UnusableImage] != 3 || codes[filter.EmptyImage] != 1 {
		t.Errorf("%v", r.Problems)
	}
}
