package catalogdir_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

const (
	pkgA = "{\"schema\":\"olm.package\",\"name\":\"a\",\"defaultChannel\":\"stable\"}\n"
	chA  = "{\"schema\":\"olm.channel\",\"name\":\"stable\",\"package\":\"a\",\"entries\":[{\"name\":\"a.v1.0.0\"}]}\n"
	buA1 = "{\"schema\":\"olm.bundle\",\"name\":\"a.v1.0.0\",\"package\":\"a\",\"image\":\"r/a:1\",\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"a\",\"version\":\"1.0.0\"}}]}\n"
	pkgB = "{\"schema\":\"olm.package\",\"name\":\"b\",\"defaultChannel\":\"\"}\n"
)

func newBundle(pkg, v string) string {
	return "{\"schema\":\"olm.bundle\",\"name\":\"" + pkg + ".v" + v + "\",\"package\":\"" + pkg + "\",\"image\":\"r/" + pkg + ":" + v + "\",\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"" + pkg + "\",\"version\":\"" + v + "\"}}]}\n"
}

// adding appends the blobs of a text to a catalog.
func adding(t *testing.T, text string) func(*declcfg.Catalog) {
	return func(c *declcfg.Catalog) { c.Append(parse(t, text)) }
}

func removing(names ...string) func(*declcfg.Catalog) {
	return func(c *declcfg.Catalog) {
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return slices.Contains(names, b.Name) })
		c.Channels = slices.DeleteFunc(c.Channels, func(b declcfg.Channel) bool { return slices.Contains(names, b.Name) })
		c.Packages = slices.DeleteFunc(c.Packages, func(b declcfg.Package) bool { return slices.Contains(names, b.Name) })
	}
}

func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		pkg    string
		change func(*declcfg.Catalog)
		want   map[string]string // what is different; "-" for a file that is gone
	}{
		"a new bundle goes behind the last of its package": {
			map[string]string{"a/catalog.json": pkgA + buA1 + chA, "b/catalog.json": pkgB},
			"a", adding(t, newBundle("a", "1.1.0")),
			map[string]string{"a/catalog.json": pkgA + buA1 + newBundle("a", "1.1.0") + chA},
		},
		"a new package goes where others are": {
			map[string]string{"a/catalog.json": pkgA + chA + buA1},
			"b", adding(t, pkgB),
			map[string]string{"b/catalog.json": pkgB},
		},
		"a new package of a catalog in one file goes to its end": {
			map[string]string{"catalog.json": pkgA + chA + buA1},
			"b", adding(t, pkgB),
			map[string]string{"catalog.json": pkgA + chA + buA1 + pkgB},
		},
		"one bundle a file, called after its version": {
			map[string]string{"a/package.json": pkgA, "a/channels.json": chA, "a/bundles/v1.0.0.json": buA1},
			"a", adding(t, newBundle("a", "1.1.0")),
			map[string]string{"a/bundles/v1.1.0.json": newBundle("a", "1.1.0")},
		},
		"a package that goes takes its directory with it": {
			map[string]string{"a/package.json": pkgA, "a/x/channels.json": chA, "a/y/z/bundles.json": buA1, "b/catalog.json": pkgB},
			"a", func(c *declcfg.Catalog) { *c = declcfg.Catalog{} },
			map[string]string{"a/package.json": "-", "a/x/channels.json": "-", "a/y/z/bundles.json": "-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			before := state(t, dir)
			result, err := edit(t, dir, []string{c.pkg}, c.change)
			check(t, err)
			want := map[string]string{}
			for name, text := range c.files {
				want[name] = text
			}
			for name, text := range c.want {
				if want[name] = text; text == "-" {
					delete(want, name)
				}
			}
			sameFiles(t, contents(t, dir), want)
			var touched []string
			for name := range c.want {
				touched = append(touched, name)
			}
			untouched(t, before, state(t, dir), touched...)
			slices.Sort(touched)
			if got := result.Files(); strings.Join(got, " ") != strings.Join(touched, " ") {
				t.Errorf("told of %q, not of %q", got, touched)
			}
			before = state(t, dir)
			if result, err = edit(t, dir, []string{c.pkg}, func(*declcfg.Catalog) {}); err != nil || !result.Unchanged() {
				t.Errorf("again: %v %v", result, err)
			}
			untouched(t, before, state(t, dir))
		})
	}
}
