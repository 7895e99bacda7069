package sqlite_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

func origins(t testing.TB, path string) (map[string]declcfg.Origin, []sqlite.Finding) {
	t.Helper()
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	o, err := db.Origins(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return o, db.Findings()
}

// Databases of every schema version give the same origins for the same bundles, with or without the columns.
func TestOriginsOfSchemaVersions(t *testing.T) {
	all := recorded.All(t)
	want, _ := origins(t, all.Database(t, "small"))
	if o := want["etcdoperator.v0.9.2"]; len(want) != 12 || o.Replaces != "etcdoperator.v0.9.0" {
		t.Fatalf("got %+v", want)
	}
	for version := range 13 {
		if got, _ := origins(t, all.Database(t, fmt.Sprintf("schema-%d", version))); !reflect.DeepEqual(got, want) {
			t.Errorf("version %d: got %+v", version, got)
		}
	}
}

// Origins come from the columns even if channels differ, and do not affect anything else in the database.
func TestOriginsAreWrittenAndRead(t *testing.T) {
	given := map[string]declcfg.Origin{
		"etcdoperator.v0.9.4": {Replaces: "x", Skips: []string{"y", "z"}, SubstitutesFor: "w"},
		"etcdoperator.v0.9.2": {},
	}
	c, _, err := read(t, recorded.Part(t).Database(t, "small"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "index.db")
	_, err = sqlite.Create(context.Background(), path, c.Blobs(),
		sqlite.WriteOptions{Origins: func(pkg, bundle string) (declcfg.Origin, bool) {
			o, ok := given[bundle]
			return o, ok && pkg == "etcd"
		}})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := origins(t, recorded.Part(t).Database(t, "small"))
	maps.Copy(want, given)
	if got, _ := origins(t, path); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	back, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameCatalog(t, c, back)
	_, err = sqlite.Create(context.Background(), path, c.Blobs(),
		sqlite.WriteOptions{Origins: func(string, string) (declcfg.Origin, bool) {
			return declcfg.Origin{Replaces: "a\x00b"}, true
		}})
	if err == nil {
		t.Error("a NUL was written")
	}
}

// A column that is not text is a finding and counts as missing.
func TestOriginsThatAreNoText(t *testing.T) {
	path := altered(t, "small",
		"UPDATE operatorbundle SET replaces = CAST(x'ff00' AS TEXT), skips = NULL WHERE name = 'etcdoperator.v0.9.2'")
	got, findings := origins(t, path)
	if o := got["etcdoperator.v0.9.2"]; o.Replaces != "etcdoperator.v0.9.0" {
		t.Errorf("got %+v", o)
	}
	if !slices.ContainsFunc(findings,
		func(f sqlite.Finding) bool { return f.Field == "replaces" && f.Bundle == "etcdoperator.v0.9.2" }) {
		t.Errorf("got %v", findings)
	}
	if _, _, err := read(t, path, sqlite.Options{}); err != nil {
		t.Error(err)
	}
}

// A reduced catalog is the complete one with reduced bundles; with the complete bundles of a second pass it becomes the
// complete one again.
func TestReducedCatalogs(t *testing.T) {
	all := recorded.All(t)
	for _, name := range []string{"medium", "subs", "semver", "constraint", "deprec-v1.2.0"} {
		path := all.Database(t, name)
		whole, _, err := read(t, path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := db.Reduced(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole.Bundles {
			full, err := got.Bundles[i].Restored(&whole.Bundles[i])
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(declcfg.AppendJSON(nil, full, false),
				declcfg.AppendJSON(nil, &whole.Bundles[i], false)) {
				t.Errorf("%s: bundle %s is not the same when it is restored", name, full.Name)
			}
			reduced := whole.Bundles[i]
			reduced.Properties = slices.Clone(reduced.Properties)
			reduced.Reduce()
			a, aErr := reduced.VersionRelease()
			b, bErr := got.Bundles[i].VersionRelease()
			if !reflect.DeepEqual(declcfg.AppendJSON(nil, &reduced, false),
				declcfg.AppendJSON(nil, &got.Bundles[i], false)) || a.String() != b.String() ||
				(aErr == nil) != (bErr == nil) || got.Bundles[i].Reduced() != reduced.Reduced() {
				t.Errorf("%s: bundle %s is another one when it is reduced", name, full.Name)
			}
		}
		whole.Bundles, got.Bundles = nil, nil
		if !reflect.DeepEqual(whole, got) {
			t.Errorf("%s: the rest differs", name)
		}
		some := whole.Packages[0].Name
		for b, err := range db.BlobsOf(context.Background(), func(pkg string) bool { return pkg == some }) {
			if err != nil || b.BlobPackage() != some {
				t.Fatalf("%v %v", b, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
