package change_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// altered returns a recorded database after some SQL statements.
func altered(t testing.TB, name string, statements ...string) string {
	t.Helper()
	path := recorded.Part(t).Database(t, name)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// An invalid package of a database can be removed. Any other edit would lose it and is refused, unless that is
// accepted.
func TestBrokenPackages(t *testing.T) {
	breakIt := "UPDATE package SET default_channel = 'nowhere' WHERE name = 'etcd'"
	rm := func(name string) change.Edit {
		return pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Remove(c, []string{name}, edit.RemoveOptions{})
		})
	}
	add := func(pkg string) change.Edit {
		return adding(edittest.Additions(t, pkg+" 9.0.0 @a"), edit.AddOptions{})
	}
	for _, c := range []struct {
		what      string
		e         change.Edit
		keepGoing bool
		refused   bool
		want      string // packages
	}{
		{what: "it is removed", e: rm("etcd"), want: "silicom-sts-operator"},
		{what: "others are kept", e: pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Prune(c, []string{"silicom-sts-operator"})
		}), want: "silicom-sts-operator"},
		{what: "another one is added", e: add("new"), refused: true},
		{what: "another one is added and it may go", e: add("new"), keepGoing: true, want: "new silicom-sts-operator"},
		{what: "something is added to it", e: add("etcd"), refused: true},
		{what: "nothing changes and it may go", e: removalOf("nothing"), keepGoing: true, want: "unchanged"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := altered(t, "small", breakIt)
			before := state(t, filepath.Dir(path))
			r, err := c.e.InPlace(context.Background(), path, change.Options{KeepGoing: c.keepGoing})
			if c.refused || c.want == "unchanged" {
				var broken *change.BrokenError
				if c.refused && (!errors.As(err, &broken) || broken.Package != "etcd") ||
					!c.refused && (err != nil || !r.Unchanged) {
					t.Errorf("got %v", err)
				}
				if after := state(t, filepath.Dir(path)); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range read(t, path).Packages {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %s", got)
			}
			if !slices.ContainsFunc(r.Findings,
				func(f sqlite.Finding) bool { return f.Kind == sqlite.Quarantined && f.Package == "etcd" }) {
				t.Errorf("got %v", r.Findings)
			}
		})
	}
	// Adding a bundle to an invalid package is refused, even if losing the package is accepted.
	path := altered(t, "small", breakIt)
	var broken *change.BrokenError
	if _, err := add("etcd").InPlace(context.Background(), path,
		change.Options{KeepGoing: true}); !errors.As(err, &broken) {
		t.Errorf("a broken package was replaced by what was added to it: %v", err)
	}
}

// Bundles in no channel are in the tables of a database but not in its catalog. They are reported and can be removed;
// other edits lose them too.
func TestStrandedBundles(t *testing.T) {
	const name = "etcdoperator.v0.9.4"
	strand := []string{"DELETE FROM channel_entry WHERE operatorbundle_name = '" + name + "'",
		"UPDATE channel SET head_operatorbundle_name = 'etcdoperator.v0.9.2' WHERE head_operatorbundle_name = '" +
			name + "'"}
	stranded := func(path string) []sqlite.Stranded {
		db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s, err := db.Stranded(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	path := altered(t, "small", strand...)
	if got := stranded(path); len(got) != 1 || got[0].Name != name || got[0].Package != "etcd" || got[0].Image == "" {
		t.Fatalf("got %v", got)
	}
	r, err := change.PruneStranded().InPlace(context.Background(), path, change.Options{})
	if err != nil || len(r.Account.Changes) != 1 || r.Account.Changes[0].Bundle != name || r.Written == nil ||
		len(stranded(path)) != 0 {
		t.Errorf("%v, %+v, %v", err, r, stranded(path))
	}
	r, err = change.PruneStranded().InPlace(context.Background(), path, change.Options{})
	if err != nil || !r.Unchanged || len(r.Account.Changes) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	path = altered(t, "small", strand...)
	r, err = removalOf("silicom-sts-operator").InPlace(context.Background(), path, change.Options{})
	if err != nil || len(stranded(path)) != 0 || !slices.ContainsFunc(r.Findings,
		func(f sqlite.Finding) bool { return f.Kind == sqlite.Dropped && f.Bundle == name }) {
		t.Errorf("%v, %+v", err, r)
	}
}
