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
	return "{\"schema\":\"olm.bundle\",\"name\":\"" + pkg + ".v" + v + "\",\"package\":\"" + pkg + "\",\"image\":\"r/" +
		pkg + ":" + v + "\",\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"" + pkg +
		"\",\"version\":\"" + v + "\"}}]}\n"
}

// adding returns an edit that appends the blobs of a text.
func adding(t *testing.T, text string) func(*declcfg.Catalog) {
	return func(c *declcfg.Catalog) { c.Append(parse(t, text)) }
}

func removing(names ...string) func(*declcfg.Catalog) {
	return func(c *declcfg.Catalog) {
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return slices.Contains(names, b.Name) })
		c.Channels = slices.DeleteFunc(c.Channels,
			func(b declcfg.Channel) bool { return slices.Contains(names, b.Name) })
		c.Packages = slices.DeleteFunc(c.Packages,
			func(b declcfg.Package) bool { return slices.Contains(names, b.Name) })
	}
}

func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		pkg    string
		change func(*declcfg.Catalog)
		want   map[string]string // the expected changes; "-" for a removed file
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
			map[string]string{"a/package.json": pkgA, "a/x/channels.json": chA, "a/y/z/bundles.json": buA1,
				"b/catalog.json": pkgB},
			"a", func(c *declcfg.Catalog) { *c = declcfg.Catalog{} },
			map[string]string{"a/package.json": "-", "a/x/channels.json": "-", "a/y/z/bundles.json": "-"},
		},
		"one bundle a file, called after its name": {
			map[string]string{"a/package.json": pkgA, "a/channels.json": chA, "a/a.v1.0.0.json": buA1},
			"a", adding(t, newBundle("a", "1.1.0")),
			map[string]string{"a/a.v1.1.0.json": newBundle("a", "1.1.0")},
		},
		"one bundle a directory": {
			map[string]string{"a/package.json": pkgA, "a/channels.json": chA, "a/1.0.0/bundle.json": buA1,
				"b/catalog.json": pkgB},
			"a", adding(t, newBundle("a", "1.1.0")+newBundle("a", "1.2.0")),
			map[string]string{"a/1.1.0/bundle.json": newBundle("a", "1.1.0"),
				"a/1.2.0/bundle.json": newBundle("a", "1.2.0")},
		},
		"one bundle a file, called after nothing that is known": {
			map[string]string{"a/package.json": pkgA, "a/channels.json": chA, "a/b/001.json": buA1,
				"a/b/002.json": newBundle("a", "1.0.1")},
			"a", adding(t, newBundle("a", "1.1.0")),
			map[string]string{"a/b/a.v1.1.0.json": newBundle("a", "1.1.0")},
		},
		"a file for all bundles that has only one yet": {
			map[string]string{"a/package.json": pkgA, "a/channels.json": chA, "a/bundles.json": buA1},
			"a", adding(t, newBundle("a", "1.1.0")),
			map[string]string{"a/bundles.json": buA1 + newBundle("a", "1.1.0")},
		},
		"bundles of several files: beside the one before by version": {
			map[string]string{"a/package.json": pkgA + chA, "a/v1.json": buA1 + newBundle("a", "1.9.0"),
				"a/v2.json": newBundle("a", "2.0.0") + newBundle("a", "2.10.0")},
			"a", adding(t, newBundle("a", "1.10.0")+newBundle("a", "2.9.0")+newBundle("a", "0.1.0")),
			map[string]string{
				"a/v1.json": buA1 + newBundle("a", "1.9.0") + newBundle("a", "0.1.0") + newBundle("a", "1.10.0"),
				"a/v2.json": newBundle("a", "2.0.0") + newBundle("a", "2.10.0") + newBundle("a", "2.9.0"),
			},
		},
		"a channel of one file each": {
			map[string]string{"a/package.json": pkgA, "a/channels/stable.json": chA, "a/bundles.json": buA1},
			"a", adding(t, strings.ReplaceAll(chA, "stable", "fast")),
			map[string]string{"a/channels/fast.json": strings.ReplaceAll(chA, "stable", "fast")},
		},
		"a channel whose name is no file's": {
			map[string]string{"a/package.json": pkgA, "a/channels/stable.json": chA,
				"a/channels/x.json": strings.ReplaceAll(chA, "stable", "x")},
			"a", adding(t, strings.ReplaceAll(chA, "stable", "../../up")),
			map[string]string{"a/channels/stable.json": chA + strings.ReplaceAll(chA, "stable", "../../up")},
		},
		"a schema that the package has not: to its olm.package": {
			map[string]string{"a/package.json": pkgA, "a/channels/stable.json": chA, "a/bundles.json": buA1},
			"a", adding(t, "{\"schema\":\"olm.deprecations\",\"package\":\"a\",\"entries\":[]}\n"),
			map[string]string{"a/package.json": pkgA +
				"{\"schema\":\"olm.deprecations\",\"package\":\"a\",\"entries\":[]}\n"},
		},
		"a new package: as those that have one file": {
			map[string]string{"a.json": pkgA + chA + buA1, "c.json": strings.ReplaceAll(pkgB, "b", "c")},
			"b", adding(t, pkgB),
			map[string]string{"b.json": pkgB},
		},
		"a new package: the format that most files have": {
			map[string]string{"one/x.yaml": "schema: olm.package\nname: a\n", "one/y.yaml": "schema: x\npackage: a\n",
				"two.json": pkgB},
			"c", adding(t, strings.ReplaceAll(pkgB, "b", "c")),
			map[string]string{"c/catalog.yaml": "---\ndefaultChannel: \"\"\nname: c\nschema: olm.package\n"},
		},
		"a new package of an empty catalog": {
			map[string]string{"empty.yaml": ""},
			"b", adding(t, pkgB),
			map[string]string{"b/catalog.json": "{\n    \"schema\": \"olm.package\",\n    \"name\": " +
				"\"b\",\n    \"defaultChannel\": \"\"\n}\n"},
		},
		"a new package beside a single one in its directory": {
			map[string]string{"a/index.json": pkgA + chA + buA1},
			"b", adding(t, pkgB),
			map[string]string{"b/index.json": pkgB},
		},
		"packages that share files": {
			map[string]string{"1.json": pkgA + pkgB + chA,
				"2.json": newBundle("b", "1.0.0") + buA1 + newBundle("b", "2.0.0")},
			"a", func(c *declcfg.Catalog) { adding(t, newBundle("a", "3.0.0"))(c); removing("a", "a.v1.0.0")(c) },
			map[string]string{"1.json": pkgB + chA,
				"2.json": newBundle("b", "1.0.0") + newBundle("a", "3.0.0") + newBundle("b", "2.0.0")},
		},
		"an ignored place is not used": {
			map[string]string{".indexignore": "v2*\n", "a/package.json": pkgA, "a/channels.json": chA,
				"a/b/v1.0.0.json": buA1, "a/b/v1.1.0.json": newBundle("a", "1.1.0"), "a/README": "x",
				"a/.indexignore": "README"},
			"a", adding(t, newBundle("a", "2.0.0")+newBundle("a", "3.0.0")),
			map[string]string{"a/b/a.v2.0.0.json": newBundle("a", "2.0.0"), "a/b/v3.0.0.json": newBundle("a", "3.0.0")},
		},
		"a taken place is not used": {
			map[string]string{".indexignore": "v2*\n", "a/package.json": pkgA, "a/channels.json": chA,
				"a/b/v1.0.0.json": buA1, "a/b/v2.0.0.json": "mine"},
			"a", adding(t, newBundle("a", "2.0.0")),
			map[string]string{"a/b/v1.0.0.json": buA1 + newBundle("a", "2.0.0")},
		},
		"files of which nothing is left go, and empty ones stay": {
			map[string]string{"a/package.json": pkgA, "a/b/v1.json": buA1, "a/b/c/v2.json": newBundle("a", "1.1.0"),
				"a/empty": "", "b/empty": "", "b/catalog.json": pkgB},
			"a", removing("a.v1.0.0", "a.v1.1.0"),
			map[string]string{"a/b/v1.json": "-", "a/b/c/v2.json": "-"},
		},
		"the last file of a catalog": {
			map[string]string{"a/package.json": pkgA},
			"a", removing("a"),
			map[string]string{"a/package.json": "-"},
		},
		"unknown schemas stay, and change in their place": {
			map[string]string{"a/x.json": pkgA +
				"{\"schema\":\"x\",\"package\":\"a\",\"n\":1}{\"n\": 2, \"schema\": \"x\", \"package\": " +
				"\"a\"}\n{\"schema\":\"y\"}"},
			"a", func(c *declcfg.Catalog) {
				c.Others[1].Blob = []byte(`{"n":3,"package":"a","schema":"x"}`)
				c.Others = slices.Insert(c.Others, 0,
					declcfg.Meta{Schema: "x", Package: "a", Blob: []byte(`{"n":4,"package":"a","schema":"x"}`)})
			},
			map[string]string{"a/x.json": pkgA +
				"{\"schema\":\"x\",\"package\":\"a\",\"n\":1}{\"n\": 4, \"schema\": \"x\", \"package\": " +
				"\"a\"}\n{\"n\": 3, \"schema\": \"x\", \"package\": \"a\"}\n{\"schema\":\"y\"}"},
		},
		"blobs of no package": {
			map[string]string{"a/x.json": pkgA + "{\"schema\":\"x\",\"n\":1}\n"},
			"", func(c *declcfg.Catalog) {
				c.Others[0].Blob = []byte(`{"schema":"x","n":2}`)
				c.Others = append(c.Others, declcfg.Meta{Schema: "y", Blob: []byte(`{"schema":"y"}`)})
			},
			map[string]string{"a/x.json": pkgA + "{\"schema\":\"x\",\"n\":2}\n{\"schema\":\"y\"}\n"},
		},
		"names with spaces, dashes and other letters": {
			map[string]string{"-a b/\u00fc/-package.json": pkgA, "-a b/\u00fc/v1.0.0 - x.json": buA1},
			"a", func(c *declcfg.Catalog) { adding(t, newBundle("a", "2.0.0"))(c); c.Packages[0].DefaultChannel = "x" },
			map[string]string{"-a b/\u00fc/-package.json": strings.ReplaceAll(pkgA, "stable", "x"),
				"-a b/\u00fc/v2.0.0 - x.json": newBundle("a", "2.0.0")},
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
			if result, err = edit(t, dir, []string{c.pkg}, func(*declcfg.Catalog) {}); err != nil ||
				!result.Unchanged() {
				t.Errorf("again: %v %v", result, err)
			}
			untouched(t, before, state(t, dir))
		})
	}
}
