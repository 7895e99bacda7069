package change_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/extent"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// verbsFor returns edits of every kind that are possible for a catalog.
func verbsFor(t testing.TB, c *declcfg.Catalog) map[string]change.Edit {
	verbs := map[string]change.Edit{
		"strand": change.PruneStranded(),
		"prune nothing": pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Prune(c, []string{"no-such-package"})
		}),
	}
	refs := map[string][]string{
		"etcd":    edittest.Refs("community/etcd: v0.9.4 v0.9.4-clusterwide"),
		"kairos":  edittest.Refs("community/kairos-operator: v2.1.1 v2.2.0"),
		"health":  edittest.Refs("community/node-healthcheck-operator: v0.10.3 v0.11.0 v0.12.0"),
		"subs":    edittest.Refs("synth/synth-subs: v1.1.0 v1.1.0-0.1664.p v1.2.0"),
		"deprec":  edittest.Refs("synth/synth-deprec: v1.4.0 v2.0.0"),
		"skupper": edittest.Refs("community/skupper-operator: v1.9.4 v1.9.6"),
	}
	for what, images := range refs {
		var list []edit.Addition
		for _, image := range images {
			a := edittest.RecordedAddition(t, image)
			b := *a.Bundle // another image, as equal ones are refused
			b.Image = strings.Replace(b.Image, "127.0.0.1", "other.example", 1)
			a.Bundle = &b
			list = append(list, a)
		}
		for _, mode := range edit.Modes() {
			verbs["add "+what+" in mode "+string(mode)] = adding(list,
				edit.AddOptions{Mode: mode, SubstitutesFor: true, OverwriteLatest: true, Permissive: true})
		}
	}
	if len(c.Packages) == 0 {
		return verbs
	}
	for _, p := range []declcfg.Package{c.Packages[0], c.Packages[len(c.Packages)-1]} {
		verbs["rm "+p.Name] = removalOf(p.Name)
		verbs["prune "+p.Name] = pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Prune(c, []string{p.Name})
		})
		verbs["filter "+p.Name] = pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Filter(c, []edit.Selection{{Package: p.Name, HeadsOnly: true}},
				edit.FilterOptions{Permissive: true})
		})
		for i := range c.Bundles {
			if b := c.Bundles[i]; b.Package == p.Name && i%2 == 1 {
				verbs["truncate "+p.Name] = pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
					return edit.DeprecateTruncate(c, []string{b.Package + "/" + b.Name},
						edit.TruncateOptions{AllowPackageRemoval: true})
				})
				verbs["promote "+p.Name] = pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
					return edit.Promote(c,
						[]edit.Promotion{{Package: b.Package, Bundle: b.Name, Channel: "new", Default: true}})
				})
			}
		}
		verbs["merge "+p.Name] = change.Edit{Apply: func(_ context.Context,
			s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			other := edittest.Catalog(t, "aaa = a", "aaa/a: 1.0.0", p.Name+" = extra", p.Name+"/extra: 99.0.0")
			return edit.Merge([]*declcfg.Catalog{s.Catalog, other}, edit.MergeOptions{})
		}}
	}
	return verbs
}

// TestRecordedDatabases applies edits of every kind to every recorded database and to the directory migrated from it.
// Invalid packages are left out of both. Each database gets every thirtieth edit, or as many as
// [extent.Stride] says, with a different offset.
func TestRecordedDatabases(t *testing.T) {
	var edits, failed atomic.Int64
	stride := extent.Stride(30)
	all := recorded.All(t)
	t.Run("databases", func(t *testing.T) {
		for n, name := range all.Databases(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := all.Database(t, name)
				db, err := sqlite.Open(context.Background(), path, sqlite.Options{KeepGoing: true})
				if err != nil {
					if !strings.Contains("corrupt-page header-only notadb truncated zero", name) {
						t.Fatal(err)
					}
					return
				}
				c, err := declcfg.Collect(db.Blobs(context.Background()))
				if err = errors.Join(err, db.Close()); err != nil {
					t.Fatal(err)
				}
				dir := filepath.Join(t.TempDir(), "catalog")
				if err := declcfg.WriteFS(context.Background(), dir, declcfg.FormatYAML, c.Blobs()); err != nil {
					t.Fatal(err)
				}
				verbs := verbsFor(t, c)
				for i, what := range slices.Sorted(maps.Keys(verbs)) {
					if (i+n)%stride != 0 {
						continue
					}
					e := verbs[what]
					b := newBoth(t)
					data, err := os.ReadFile(path)
					if err == nil {
						err = os.WriteFile(b.at[0], data, 0o600)
					}
					if err == nil {
						err = os.CopyFS(b.at[1], os.DirFS(dir))
					}
					if err != nil {
						t.Fatal(err)
					}
					for j, kind := range kinds {
						_, b.errs[j] = e.InPlace(context.Background(), b.at[j],
							change.Options{KeepGoing: true, Create: true, New: kind})
						b.after[j] = &declcfg.Catalog{}
						if b.errs[j] == nil {
							b.after[j] = read(t, b.at[j])
						}
					}
					if edits.Add(1); b.errs[0] != nil {
						failed.Add(1)
						var problems *edit.Error
						if !errors.As(b.errs[0], &problems) {
							t.Errorf("%s: %v", what, b.errs[0])
						}
					}
					if d := b.differ(); d != "" {
						t.Errorf("%s:\n%s", what, d)
					}
				}
			})
		}
	})
	t.Logf("%d edits, of which %d were refused", edits.Load(), failed.Load())
	if edits.Load() < int64(1200/stride) || failed.Load() > edits.Load()/3 {
		t.Errorf("%d edits, of which %d were refused", edits.Load(), failed.Load())
	}
}
