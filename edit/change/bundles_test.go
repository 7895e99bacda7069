package change_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/extent"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
)

// realAdditions returns the recorded bundles by package, sorted by version, without invalid ones.
func realAdditions(t *testing.T) map[string][]edit.Addition {
	t.Helper()
	packages := map[string][]edit.Addition{}
	for _, name := range testbundles.Names(t) {
		b, err := bundle.Read(context.Background(), os.DirFS(testbundles.Write(t, t.TempDir(), name)),
			bundle.ReadOptions{})
		if err != nil {
			continue
		}
		a, err := edit.NewAddition(b, edittest.Registry+"all/"+name)
		if err != nil {
			continue
		}
		p, err := a.Bundle.PackageProperty()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := semver.Parse(p.Version); err == nil && !strings.HasPrefix(name, "etcd-overwrite") {
			packages[b.Package] = append(packages[b.Package], a)
		}
	}
	version := func(a edit.Addition) string {
		p, err := a.Bundle.PackageProperty()
		if err != nil {
			t.Fatal(err)
		}
		return p.Version
	}
	for _, list := range packages {
		slices.SortFunc(list, func(a, b edit.Addition) int {
			return cmp.Or(semver.MustParse(version(a)).Compare(semver.MustParse(version(b))),
				cmp.Compare(version(a), version(b)))
		})
	}
	return packages
}

// TestRealBundles adds the bundles of each package, all at once and one by one, in one of the modes, or in as many as
// [extent.Stride] says. Nothing was recorded for these: a database and a directory must agree and be valid.
func TestRealBundles(t *testing.T) {
	recorded.All(t) // or skips
	var bundles, edits, refused atomic.Int64
	t.Run("packages", func(t *testing.T) {
		packages := realAdditions(t)
		for n, name := range slices.Sorted(maps.Keys(packages)) {
			list := packages[name]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bundles.Add(int64(len(list)))
				for i, mode := range edit.Modes() {
					if (n+i)%extent.Stride(3) != 0 {
						continue
					}
					o := edit.AddOptions{Mode: mode, SubstitutesFor: true}
					atOnce, strict, oneByOne := newBoth(t), newBoth(t), newBoth(t)
					e := adding(list, o)
					strict.do(t, [2]change.Edit{e, e})
					o.Permissive = true
					e = adding(list, o)
					atOnce.do(t, [2]change.Edit{e, e})
					for i := range list {
						e := adding(list[i:i+1], edit.AddOptions{Mode: mode, SubstitutesFor: true})
						var errs [2]error
						for j, kind := range kinds {
							_, errs[j] = inPlace(oneByOne.at[j], kind, e)
						}
						if (errs[0] == nil) != (errs[1] == nil) ||
							errs[0] != nil && errs[0].Error() != errs[1].Error() {
							t.Fatalf("mode %s: bundle %s: database: %v\ndirectory: %v", mode, list[i].Bundle.Name,
								errs[0], errs[1])
						}
						if edits.Add(1); errs[0] != nil {
							refused.Add(1)
						}
					}
					oneByOne.do(t, [2]change.Edit{removalOf("nothing"), removalOf("nothing")})
					for what, b := range map[string]*both{"strict": strict, "at once": atOnce, "one by one": oneByOne} {
						if d := b.differ(); d != "" {
							t.Errorf("mode %s: %s:\n%s", mode, what, d)
						}
					}
					if strict.errs[0] == nil {
						if d := different(strict.after[0], atOnce.after[1]); d != "" {
							t.Errorf("mode %s: being permissive changes what is added without errors:\n%s", mode, d)
						}
					}
				}
			})
		}
	})
	if bundles.Load() < 100 || refused.Load() > edits.Load()/4 {
		t.Errorf("%d bundles, %d additions one by one, of which %d were refused", bundles.Load(), edits.Load(),
			refused.Load())
	}
	t.Logf("%d bundles, %d additions one by one, of which %d were refused", bundles.Load(), edits.Load(),
		refused.Load())
}

// removalOf returns an edit that changes nothing if the packages do not exist.
func removalOf(names ...string) change.Edit {
	return pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.Remove(c, names, edit.RemoveOptions{Permissive: true})
	})
}
