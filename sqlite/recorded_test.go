package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// write reads a database and returns its catalog as JSON or YAML.
func write(t *testing.T, path string, f declcfg.Format, level edit.Level, o sqlite.Options) (string, error) {
	t.Helper()
	o.TempDir = t.TempDir()
	db, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		return "", err
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	enc := f.NewEncoder(&out)
	for b, err := range db.Blobs(context.Background()) {
		if err != nil {
			return "", err
		}
		if b, ok := b.(*declcfg.Bundle); ok {
			if err := level.Apply(b); err != nil {
				return "", err
			}
		}
		if err := enc.Encode(b); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// difference returns the first line in which two texts differ with some context; it is empty if they are equal.
func difference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	around := func(lines []string) string {
		var b strings.Builder
		for _, l := range lines[max(0, i-6):min(len(lines), i+6)] {
			if len(l) > 120 {
				l = l[:120] + "..."
			}
			b.WriteString("    " + l + "\n")
		}
		return b.String()
	}
	return "got\n" + around(g) + "want\n" + around(w)
}

// exception is a database for which opm's answer is wrong or missing.
type exception struct {
	why  string
	err  error                  // the right error
	from string                 // the database whose answer is the right one after edit
	edit func(*declcfg.Catalog) // the change to that answer
	got  func(*declcfg.Catalog) // the change that turns our answer into opm's
}

// broken databases are refused in both modes.
var broken = map[string]exception{
	"header-only": {why: "only a part of the header is there", err: sqlite.ErrDamaged},
	"truncated":   {why: "the header declares more pages than the file has", err: sqlite.ErrDamaged},
	"notadb":      {why: "a text file", err: sqlite.ErrNotDatabase},
	"zero":        {why: "an empty file", err: sqlite.ErrNotDatabase},
}

// old databases hold the rows of "small" in the schema of an earlier version. opm fails to migrate those up to version
// 4 and damages the dependencies of the others. The right answer is that of "small" without what the version could not
// store.
var old = map[string]exception{
	"schema-0": {from: "small",
		edit: func(c *declcfg.Catalog) { withoutPackageDependencies(c); withoutImages(c); withoutOwnImage(c) },
		why:  "neither images of bundles nor dependencies on packages were stored"},
	"schema-1": {from: "small", edit: func(c *declcfg.Catalog) { withoutPackageDependencies(c); withoutImages(c) },
		why: "neither images of bundles nor dependencies on packages were stored"},
	"schema-2": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-3": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-4": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-5": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-6": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-7": {from: "small", edit: withoutPackageDependencies, why: "dependencies on packages were not stored"},
	"schema-8": {from: "small", why: "opm overwrites every dependency with the value of the first"},
	"down-6": {from: "small", edit: withoutPackageDependencies,
		why: "opm cannot migrate it up again; dependencies on packages are gone"},
	"down-7": {from: "small", edit: withoutPackageDependencies,
		why: "opm cannot migrate it up again; dependencies on packages are gone"},
	"down-8": {from: "small", why: "opm cannot migrate it up again"},
	"down-9": {from: "small", why: "opm cannot migrate it up again"},
}

// better are the databases from which opm loses data, and bindery does not.
var better = map[string]exception{
	"constraint":    {got: withoutConstraints, why: "opm drops dependencies of type olm.constraint"},
	"deprec-readd":  {got: withoutDeprecated, why: "opm leaves deprecated bundles out"},
	"deprec-two":    {got: withoutDeprecated, why: "opm leaves deprecated bundles out"},
	"deprec-v1.0.0": {got: withoutDeprecated, why: "opm leaves deprecated bundles out"},
	"deprec-v1.2.0": {got: withoutDeprecated, why: "opm leaves deprecated bundles out"},
}

func withoutProperties(c *declcfg.Catalog, drop func(declcfg.Property) bool) {
	for i := range c.Bundles {
		c.Bundles[i].Properties = slices.DeleteFunc(c.Bundles[i].Properties, drop)
	}
}

func withoutPackageDependencies(c *declcfg.Catalog) {
	withoutProperties(c, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyPackageRequired })
}

func withoutConstraints(c *declcfg.Catalog) {
	withoutProperties(c, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyConstraint })
}

func withoutImages(c *declcfg.Catalog) {
	for i := range c.Bundles {
		c.Bundles[i].Image = ""
	}
}

// withoutOwnImage removes the bundle's own image from its related images: no table lists it.
func withoutOwnImage(c *declcfg.Catalog) {
	for i := range c.Bundles {
		b := &c.Bundles[i]
		b.RelatedImages = slices.DeleteFunc(b.RelatedImages, func(r declcfg.RelatedImage) bool {
			return strings.HasPrefix(r.Image, "127.0.0.1:5056/community/")
		})
	}
}

func withoutDeprecated(c *declcfg.Catalog) {
	gone := map[string]bool{}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			gone[e.Reference.Name] = true
		}
	}
	c.Deprecations = nil
	c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return gone[b.Name] })
	for i := range c.Channels {
		ch := &c.Channels[i]
		ch.Entries = slices.DeleteFunc(ch.Entries, func(e declcfg.ChannelEntry) bool { return gone[e.Name] })
	}
}

// edited applies a change to a catalog given as JSON.
func edited(t *testing.T, text string, change func(*declcfg.Catalog)) string {
	t.Helper()
	if change == nil {
		return text
	}
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "recorded", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(c)
	var out bytes.Buffer
	if err := c.Write(&out, declcfg.FormatJSON); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func testRecorded(t *testing.T, c recorded.Collection) {
	for _, name := range c.Databases(t) {
		for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
			t.Run(name+"/"+string(compat), func(t *testing.T) {
				t.Parallel()
				got, err := write(t, c.Database(t, name), declcfg.FormatJSON, edit.LevelNone,
					sqlite.Options{Compat: compat})
				if x, ok := broken[name]; ok {
					if !errors.Is(err, x.err) {
						t.Errorf("%s: got %v, want %v", x.why, err, x.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				from, why := name, ""
				var change func(*declcfg.Catalog)
				if x, ok := old[name]; ok {
					from, change, why = x.from, x.edit, x.why
				}
				want := ""
				if c.Has("golden/" + from + "/render.json") {
					want = edited(t, string(c.File(t, "golden/"+from+"/render.json")), change)
				}
				if x, ok := better[name]; ok && compat == sqlite.CompatNone {
					if got == want {
						t.Errorf("the answer is opm's, but it should be better: %s", x.why)
					}
					// The change does not sort the right answer, but parsing does: compare both after parsing.
					got, want, why = edited(t, got, x.got), edited(t, want, func(*declcfg.Catalog) {}), x.why
				} else if change != nil {
					got = edited(t, got, func(*declcfg.Catalog) {})
				}
				if d := difference(got, want); d != "" {
					t.Errorf("%s\n%s", why, d)
				}
			})
		}
	}
}

func TestRecorded(t *testing.T)     { testRecorded(t, recorded.Part(t)) }
func TestAllRecorded(t *testing.T)  { testRecorded(t, recorded.All(t)) }
func TestRecordedYAML(t *testing.T) { testOthers(t, "render.yaml", declcfg.FormatYAML, edit.LevelNone) }
func TestRecordedCSVMetadata(t *testing.T) {
	testOthers(t, "render-csvmeta.json", declcfg.FormatJSON, edit.LevelCSVMetadata)
}

func testOthers(t *testing.T, golden string, f declcfg.Format, level edit.Level) {
	all := recorded.All(t)
	for _, name := range all.Databases(t) {
		file := "golden/" + name + "/" + golden
		if _, ok := old[name]; ok || !all.Has(file) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := write(t, all.Database(t, name), f, level,
				sqlite.Options{Compat: sqlite.CompatOPM, CSVOnly: level == edit.LevelCSVMetadata})
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(got, string(all.File(t, file))); d != "" {
				t.Error(d)
			}
		})
	}
}
