package sqlite_test

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

func hasFinding(findings []sqlite.Finding, kind sqlite.FindingKind, pkg, bundle, reason string) bool {
	return slices.ContainsFunc(findings, func(f sqlite.Finding) bool {
		return f.Kind == kind && f.Package == pkg && f.Bundle == bundle && strings.Contains(f.Reason, reason)
	})
}

func entryOf(t *testing.T, c *declcfg.Catalog, channel, bundle string) declcfg.ChannelEntry {
	t.Helper()
	for _, ch := range c.Channels {
		for _, e := range ch.Entries {
			if ch.Name == channel && e.Name == bundle {
				return e
			}
		}
	}
	t.Fatalf("channel %q has no entry %q", channel, bundle)
	return declcfg.ChannelEntry{}
}

const (
	bundle = "etcdoperator.v0.9.2"
	last   = "etcdoperator.v0.9.0" // at the end of its channels, which are valid without it
)

// opm's migration to version 5 left the version NULL and inserted rows without a name.
func TestVersionThatAMigrationLost(t *testing.T) {
	path := altered(t, "small", "PRAGMA foreign_keys=0",
		"UPDATE operatorbundle SET version = NULL WHERE name = '"+last+"'",
		"INSERT INTO operatorbundle(version) VALUES ('0.9.2')")
	c, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !bundleNames(c)[last] || !hasFinding(findings, sqlite.Repaired, "", last, "no version") {
		t.Errorf("the bundle was not repaired: %+v", findings)
	}
	if !hasFinding(findings, sqlite.Dropped, "", "", "has no name") {
		t.Errorf("the row without a name is not reported: %+v", findings)
	}
	c, findings, err = read(t, path, sqlite.Options{Compat: sqlite.CompatOPM})
	if err != nil {
		t.Fatal(err)
	}
	if bundleNames(c)[last] || !hasFinding(findings, sqlite.Dropped, "etcd", last, "without a version") {
		t.Errorf("opm's answer has the bundle, or does not report it: %+v", findings)
	}
}

func TestBundlesThatOPMLosesInSilence(t *testing.T) {
	for _, c := range []struct {
		name, statement string
		kept            bool
		kind            sqlite.FindingKind
		pkg, reason     string
	}{
		{"no version anywhere", "UPDATE operatorbundle SET version = NULL, csv = NULL, bundle = NULL", false,
			sqlite.Dropped, "etcd", "no version"},
		{"no image, manifests", "UPDATE operatorbundle SET bundlepath = NULL", true, sqlite.Repaired, "etcd",
			"no image"},
		{"no image, no manifests", "UPDATE operatorbundle SET bundlepath = NULL, bundle = NULL", false, sqlite.Dropped,
			"etcd", "neither an image nor manifests"},
	} {
		got, findings, err := read(t,
			altered(t, "small", "PRAGMA foreign_keys=0", c.statement+" WHERE name = '"+last+"'"), sqlite.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if bundleNames(got)[last] != c.kept || !hasFinding(findings, c.kind, c.pkg, last, c.reason) {
			t.Errorf("%s: kept %v, findings %+v", c.name, bundleNames(got)[last], findings)
		}
	}
}

func TestRowsWithoutAPlace(t *testing.T) {
	path := altered(t, "small", "PRAGMA foreign_keys=0",
		"INSERT INTO operatorbundle(name, version, bundlepath) VALUES ('stray.v1.0.0', '1.0.0', 'x.example/y:1')",
		"INSERT INTO channel_entry VALUES (901, 'alpha', 'etcd', 'gone.v1.0.0', NULL, 7)",
		"INSERT INTO properties(type, value, operatorbundle_name) VALUES ('a', '{}', 'gone.v2.0.0')",
		"INSERT INTO package VALUES ('hollow', 'x')",
		"INSERT INTO dependencies(type, value, operatorbundle_name) VALUES ('olm.crd', '{}', '"+bundle+"')")
	_, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct{ pkg, bundle, reason string }{
		{"", "stray.v1.0.0", "in no channel"},
		{"etcd", "gone.v1.0.0", "not in the database"},
		{"", "gone.v2.0.0", "not in the database"},
		{"hollow", "", "no channels"},
		{"etcd", bundle, "unknown type"},
	} {
		if !hasFinding(findings, sqlite.Dropped, w.pkg, w.bundle, w.reason) {
			t.Errorf("%+v is not reported: %+v", w, findings)
		}
	}
	if _, _, err := read(t, path, sqlite.Options{Compat: sqlite.CompatOPM}); err == nil ||
		!strings.Contains(err.Error(), "package hollow not found") {
		t.Errorf("opm refuses a package without channels: %v", err)
	}
}

// A channel whose entries begin at a greater depth than those of other channels keeps its edges.
func TestChannelThatBeginsDeeper(t *testing.T) {
	path := altered(t, "small",
		"UPDATE channel_entry SET depth = depth + 1 WHERE channel_name = 'singlenamespace-alpha'")
	want := entryOf(t, mustRead(t, recorded.Part(t).Database(t, "small"), sqlite.Options{}), "singlenamespace-alpha",
		"etcdoperator.v0.9.4")
	if got := entryOf(t, mustRead(t, path, sqlite.Options{}), "singlenamespace-alpha",
		"etcdoperator.v0.9.4"); got.Replaces != want.Replaces || len(got.Skips) > 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got := entryOf(t, mustRead(t, path, sqlite.Options{Compat: sqlite.CompatOPM}), "singlenamespace-alpha",
		"etcdoperator.v0.9.4")
	if got.Replaces != "" || !slices.Equal(got.Skips, []string{want.Replaces}) {
		t.Errorf("opm takes the edges of such a channel for skips; got %+v", got)
	}
}

func mustRead(t *testing.T, path string, o sqlite.Options) *declcfg.Catalog {
	t.Helper()
	c, _, err := read(t, path, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDependenciesSurvive(t *testing.T) {
	path := altered(t, "small", `INSERT INTO dependencies(type, value, operatorbundle_name) VALUES
		('olm.label', '{ "label": "x" }', '`+bundle+`'), ('olm.constraint', '{"cel":{"rule":"true"}}', '`+bundle+`')`,
		"SELECT 1")
	for compat, want := range map[sqlite.Compat]string{sqlite.CompatNone: `olm.constraint {"cel":{"rule":"true"}},olm.label {"label":"x"}`, sqlite.CompatOPM: ""} {
		var got []string
		for _, b := range mustRead(t, path, sqlite.Options{Compat: compat}).Bundles {
			for _, p := range b.Properties {
				if b.Name == bundle && (p.Type == declcfg.PropertyLabel || p.Type == declcfg.PropertyConstraint) {
					got = append(got, p.Type+" "+string(p.Value))
				}
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("compat %q: got %s, want %s", compat, got, want)
		}
	}
}

// Version 9's migration gave all dependencies the value of the first one; for those that became invalid only the loss
// is reported.
func TestDependenciesThatAMigrationDamaged(t *testing.T) {
	path := altered(t, "small",
		`UPDATE dependencies SET value = '{"packageName":"special-resource-operator","version":"<=4.9.0"}'`)
	c, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasFinding(findings, sqlite.Dropped, "silicom-sts-operator", "silicom-sts-operator.v0.0.1", "names no kind") {
		t.Errorf("not reported: %+v", findings)
	}
	kinds := 0
	for _, b := range c.Bundles {
		for _, p := range b.Properties {
			if p.Type == declcfg.PropertyGVKRequired {
				kinds++
			}
		}
	}
	if kinds != 2 {
		t.Errorf("%d required APIs are left of the 2 that the database lists elsewhere", kinds)
	}
}

func TestDeprecated(t *testing.T) {
	c := mustRead(t, recorded.Part(t).Database(t, "deprec-v1.2.0"), sqlite.Options{})
	if len(c.Deprecations) != 1 || len(c.Deprecations[0].Entries) != 1 ||
		c.Deprecations[0].Entries[0].Reference.Name != "synth-deprec.v1.2.0" ||
		c.Deprecations[0].Entries[0].Message == "" || !bundleNames(c)["synth-deprec.v1.2.0"] {
		t.Errorf("got %+v", c.Deprecations)
	}
	// A deprecated bundle in no channel is not in the catalog.
	path := altered(t, "deprec-v1.2.0", "PRAGMA foreign_keys=0",
		"INSERT INTO operatorbundle(name, version, bundlepath) VALUES ('synth-deprec.v0.1.0', '0.1.0', "+
			"'x.example/y:1')",
		"INSERT INTO deprecated VALUES ('synth-deprec.v0.1.0')",
		"INSERT INTO channel_entry VALUES (900, 'gone', 'synth-deprec', 'synth-deprec.v0.1.0', NULL, 0)")
	c, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if bundleNames(c)["synth-deprec.v0.1.0"] || !hasFinding(findings, sqlite.Dropped, "synth-deprec",
		"synth-deprec.v0.1.0", "none of its channels") {
		t.Errorf("findings %+v", findings)
	}
	// A deprecated bundle that would invalidate the package is left out: here it is a second head.
	path = altered(t, "deprec-v1.2.0", "PRAGMA foreign_keys=0",
		"UPDATE channel_entry SET replaces = NULL WHERE operatorbundle_name = 'synth-deprec.v1.3.0' AND channel_name "+
			"= 'stable'")
	c, findings, err = read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Deprecations) != 0 || bundleNames(c)["synth-deprec.v1.2.0"] || !hasFinding(findings, sqlite.Dropped,
		"synth-deprec", "synth-deprec.v1.2.0", "not valid with it") {
		t.Errorf("findings %+v", findings)
	}
}

func TestKeepGoing(t *testing.T) {
	path := altered(t, "small", "UPDATE operatorbundle SET version = 'latest' WHERE name = '"+bundle+"'",
		"UPDATE channel_entry SET replaces = NULL WHERE entry_id = 13")
	c, findings, err := read(t, path, sqlite.Options{KeepGoing: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Packages) != 1 || c.Packages[0].Name != "silicom-sts-operator" || len(c.Bundles) != 6 {
		t.Errorf("got %d packages, %d bundles", len(c.Packages), len(c.Bundles))
	}
	if !hasFinding(findings, sqlite.Quarantined, "etcd", "", "latest") {
		t.Errorf("findings %+v", findings)
	}
}

func TestIcons(t *testing.T) {
	icon := func(value string) string {
		return altered(t, "small",
			`UPDATE operatorbundle SET csv = json_set(CAST(csv AS TEXT), '$.spec.icon[0].base64data', '`+value+`')`)
	}
	if c := mustRead(t, icon("aGVs bG8="), sqlite.Options{}); c.Packages[0].Icon == nil ||
		string(c.Packages[0].Icon.Data) != "hello" {
		t.Errorf("blanks in base64: got %+v", c.Packages[0].Icon)
	}
	c, findings, err := read(t, icon("*"), sqlite.Options{})
	if err != nil || c.Packages[0].Icon != nil || !slices.ContainsFunc(findings,
		func(f sqlite.Finding) bool { return f.Field == "icon" && f.Package == "etcd" }) {
		t.Errorf("broken base64: %v, %+v", err, findings)
	}
}

// The first releases had no table for the schema version, and an interrupted one left it empty.
func TestNoSchemaVersion(t *testing.T) {
	for _, name := range []string{"schema-0", "small"} {
		want := mustRead(t, recorded.Part(t).Database(t, name), sqlite.Options{})
		for _, statement := range []string{"DROP TABLE schema_migrations", "DELETE FROM schema_migrations"} {
			path := altered(t, name, statement)
			if got := mustRead(t, path, sqlite.Options{}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: the catalog is another one", name, statement)
			}
			db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if version, has := db.SchemaVersion(); has {
				t.Errorf("%s, %s: version %d", name, statement, version)
			}
			db.Close()
		}
	}
}

// Memory does not grow with the number of bundles times the size of their manifests.
func TestMemory(t *testing.T) {
	const bundles, size = 300, 512 << 10 // 150 MB
	statements := []string{"BEGIN"}
	for i := range bundles {
		name := fmt.Sprintf("big.v0.0.%d", i)
		statements = append(statements,
			fmt.Sprintf(
				`INSERT INTO operatorbundle(name, version, bundlepath, bundle) VALUES ('%s', '0.0.%d', 'x.example/y:%d', '{"kind":"ConfigMap","a":"' || hex(zeroblob(%d)) || '"}')`, name, i, i, size/2),
			fmt.Sprintf(`INSERT INTO channel_entry VALUES (%d, 'c', 'big', '%s', %s, %d)`, i+1, name,
				[]string{"NULL", fmt.Sprint(i)}[min(i, 1)], bundles-i))
	}
	statements = append(statements, fmt.Sprintf("INSERT INTO channel VALUES ('c', 'big', 'big.v0.0.%d')", bundles-1),
		"INSERT INTO package VALUES ('big', 'c')", "COMMIT")
	path := altered(t, "schema-empty-13", statements...)
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var most uint64
	n := 0
	for b, err := range db.Blobs(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := b.(*declcfg.Bundle); ok {
			if n++; n%50 == 0 {
				var stats runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&stats)
				most = max(most, stats.HeapAlloc)
			}
		}
	}
	if n != bundles {
		t.Fatalf("got %d bundles", n)
	}
	if most > 32<<20 {
		t.Errorf("%d MB are held while bundles of 1 MB are read", most>>20)
	}
}

// A ClusterServiceVersion that only the csv column has is not in the catalog, with a finding.
func TestClusterServiceVersionBesideTheManifests(t *testing.T) {
	const name = "silicom-sts-operator.v0.0.6"
	path := altered(t, "small", "UPDATE operatorbundle SET bundle = NULL WHERE name = '"+name+"'")
	_, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasFinding(findings, sqlite.Dropped, "silicom-sts-operator", name, "not among the bundle's manifests") {
		t.Errorf("it is not reported: %+v", findings)
	}
}
