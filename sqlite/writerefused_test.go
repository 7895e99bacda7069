package sqlite_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// A catalog that could not be read back is not written.
func TestRefused(t *testing.T) {
	invalid := func(c *declcfg.Catalog) iter.Seq2[declcfg.Blob, error] { return c.Blobs() }
	for name, c := range map[string]struct {
		blobs iter.Seq2[declcfg.Blob, error]
		o     sqlite.WriteOptions
		is    error // nil: a *declcfg.ValidationError
		text  string
	}{
		"NUL in a channel": {invalid(pkg("p", channel("a\x00b", "v1"))), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"NUL"},
		"NUL in a bundle": {invalid(pkg("p", channel("a", "v\x001"))), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"NUL"},
		"NUL in a skip": {invalid(pkg("p", channel("a", "v1 -v\x000"))), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"NUL"},
		"no UTF-8": {invalid(pkg("p", channel("a", "v\xff1"))), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"UTF-8"},
		"no UTF-8, replaced": {invalid(pkg("p", channel("a", "v1 v\xff0"))), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"UTF-8"},
		"two heads": {invalid(pkg("p", channel("a", "v1", "v2"))), sqlite.WriteOptions{}, nil,
			"multiple channel heads"},
		"no head": {invalid(pkg("p", channel("a", "v1 v2", "v2 v1"))), sqlite.WriteOptions{}, nil,
			"no channel head"},
		"no package": {invalid(simple(func(c *declcfg.Catalog) { c.Packages = nil })), sqlite.WriteOptions{},
			nil, "unknown package"},
		"no version": {invalid(simple(func(c *declcfg.Catalog) { c.Bundles[0].Properties = nil })),
			sqlite.WriteOptions{}, nil, "olm.package"},
		"bundle in no channel": {invalid(simple(func(c *declcfg.Catalog) {
			c.Bundles = append(c.Bundles, pkg("p", channel("x", "v9")).Bundles...)
		})), sqlite.WriteOptions{}, nil, "not found in any channel"},
		"bundle twice": {invalid(simple(func(c *declcfg.Catalog) { c.Bundles = append(c.Bundles, c.Bundles[0]) })),
			sqlite.WriteOptions{}, nil, "duplicate bundle"},
		"property without a value": {invalid(simple(func(c *declcfg.Catalog) { addProperty(&c.Bundles[0], "x", "") })),
			sqlite.WriteOptions{}, sqlite.ErrInvalid, "not valid JSON"},
		"value is no JSON": {invalid(
			simple(func(c *declcfg.Catalog) { addProperty(&c.Bundles[0], "x", `{"a":1,"a":2}`) })),
			sqlite.WriteOptions{}, sqlite.ErrInvalid, "not valid JSON"},
		"manifest with a key twice": {invalid(simple(func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties,
				declcfg.NewBundleObject([]byte(`{"kind":"A","kind":"B"}`)))
		})), sqlite.WriteOptions{}, sqlite.ErrInvalid, "duplicate"},
		"manifests that were dropped": {invalid(simple(func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties, declcfg.NewBundleObject([]byte(`{"kind":"A"}`)))
			c.Bundles[0].Reduce()
		})), sqlite.WriteOptions{}, sqlite.ErrInvalid, "has no data"},
		"manifests beyond the limit": {invalid(simple(func(c *declcfg.Catalog) {
			c.Bundles[0].Properties = append(c.Bundles[0].Properties,
				declcfg.NewBundleObject([]byte(`{"kind":"`+strings.Repeat("A", 2000)+`"}`)))
		})), sqlite.WriteOptions{Limits: sqlite.Limits{ValueBytes: 1000}}, sqlite.ErrLimit, "limit 1000"},
		"properties beyond the limit": {invalid(
			simple(func(c *declcfg.Catalog) { addProperty(&c.Bundles[0], "x", `"`+strings.Repeat("x", 2000)+`"`) })),
			sqlite.WriteOptions{Limits: sqlite.Limits{TextBytes: 1000}}, sqlite.ErrLimit, "limit exceeded"},
		"file beyond the limit": {invalid(simple(nil)),
			sqlite.WriteOptions{Limits: sqlite.Limits{FileBytes: 4096}}, sqlite.ErrLimit, "limit 4096"},
		"one bundle of two packages": {joined(pkg("p", channel("a", "v1")), pkg("q", channel("a", "v1"))),
			sqlite.WriteOptions{Lossy: true}, sqlite.ErrInvalid, "only one of each name"},
		"edge to a bundle of another": {joined(pkg("p", channel("a", "v1 w1")), pkg("q", channel("a", "w1"))),
			sqlite.WriteOptions{Lossy: true}, sqlite.ErrInvalid, "both packages"},
		"blobs that do not come together": {joined(pkg("q", channel("a", "v1")), pkg("p", channel("a", "w1")),
			pkg("q", channel("b", "x1"))), sqlite.WriteOptions{}, sqlite.ErrInvalid, "come together"},
		"channel after a bundle": {reordered(simple(nil)), sqlite.WriteOptions{}, sqlite.ErrInvalid,
			"after a bundle"},
		"error among the blobs": {func(yield func(declcfg.Blob, error) bool) {
			for b := range simple(nil).Blobs() {
				if !yield(b, nil) {
					return
				}
			}
			yield(nil, os.ErrDeadlineExceeded)
		}, sqlite.WriteOptions{}, os.ErrDeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.db")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			before := state(t, filepath.Dir(path))
			_, err := sqlite.Create(context.Background(), path, c.blobs, c.o)
			var validation *declcfg.ValidationError
			if c.is == nil && !errors.As(err, &validation) || c.is != nil && !errors.Is(err, c.is) ||
				!strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v", err)
			}
			sameState(t, before, state(t, filepath.Dir(path)))
		})
	}
}

// joined returns the blobs of catalogs one after the other.
func joined(list ...*declcfg.Catalog) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for _, c := range list {
			for b := range c.Blobs() {
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// reordered returns the blobs of a catalog with the channels last.
func reordered(c *declcfg.Catalog) iter.Seq2[declcfg.Blob, error] {
	last := *c
	first := *c
	first.Channels, last.Packages, last.Bundles = nil, nil, nil
	return joined(&first, &last)
}

// All invalid packages are named, not only the first.
func TestAllInvalidPackages(t *testing.T) {
	_, err := sqlite.Create(context.Background(), filepath.Join(t.TempDir(), "index.db"),
		joined(pkg("p", channel("a", "v1", "v2")), pkg("q", channel("a", "w1")),
			pkg("r", channel("a", "x1 x2", "x2 x1"))), sqlite.WriteOptions{})
	for _, want := range []string{`package "p"`, `package "r"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	}
}

// Names may have any characters: they are never part of SQL.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{`v'; DROP TABLE package; --`, "v\"1\"", "v`1`", "v%00", "v\n1", "v[1]", "v?1", "v:1",
		"ü☃", "v\\", strings.Repeat("v", 5000)} {
		catalog := pkg("p", channel(strings.ReplaceAll(name, " ", "_")+"'", "x"))
		catalog.Channels[0].Entries = []declcfg.ChannelEntry{{Name: name, Replaces: name + "'",
			Skips: []string{name + `"`}}}
		catalog.Bundles[0].Name = name
		path, _ := create(t, catalog.Blobs(), sqlite.WriteOptions{})
		back, _, err := read(t, path, sqlite.Options{})
		if err != nil {
			t.Fatalf("%.20q: %v", name, err)
		}
		sameCatalog(t, catalog, back)
	}
	for _, file := range []string{"a?mode=ro&x=.db", "a#b.db", "%2e.db", "a b'.db", "ü.db"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		for range 2 { // create, then replace
			if _, err := sqlite.Create(context.Background(), path, simple(nil).Blobs(),
				sqlite.WriteOptions{}); err != nil {
				t.Fatalf("%q: %v", file, err)
			}
			nothingIn(t, dir, file)
		}
		if _, _, err := read(t, path, sqlite.Options{}); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}
