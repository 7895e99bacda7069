package edit_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
)

// TestRecordedBundles adds all recorded bundles of each package in every mode. Nothing was recorded for these: the
// result must be valid and the same whether they are added at once or one by one.
func TestRecordedBundles(t *testing.T) {
	packages := map[string][]edit.Addition{}
	for _, name := range testbundles.Names(t) {
		b, err := bundle.Read(context.Background(), os.DirFS(testbundles.Write(t, t.TempDir(), name)),
			bundle.ReadOptions{})
		if err != nil {
			continue // some are invalid
		}
		a, err := edit.NewAddition(b, registry+"all/"+name)
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
	bundles, whole, same := 0, 0, 0
	for _, list := range packages {
		slices.SortFunc(list, func(a, b edit.Addition) int {
			x, _ := a.Bundle.PackageProperty()
			y, _ := b.Bundle.PackageProperty()
			v, w := semver.MustParse(x.Version), semver.MustParse(y.Version)
			return cmp.Or(v.Compare(w), cmp.Compare(x.Version, y.Version))
		})
		bundles += len(list)
		for _, mode := range edit.Modes() {
			o := edit.AddOptions{Mode: mode, SubstitutesFor: true}
			all, _, err := edit.Add(&declcfg.Catalog{}, list, o)
			o.Permissive = true
			lenient, account, lenientErr := edit.Add(&declcfg.Catalog{}, list, o)
			if lenientErr != nil || (err == nil) != (len(account.Problems) == 0) {
				t.Errorf("%s: %v, %v, %v", list[0].Bundle.Package, err, lenientErr, account)
				continue
			}
			if err := lenient.Validate(); err != nil {
				t.Errorf("%s in mode %s: %v", list[0].Bundle.Package, mode, err)
			}
			if err != nil {
				continue
			}
			whole++
			one := &declcfg.Catalog{}
			for _, a := range list {
				if one, _, err = edit.Add(one, []edit.Addition{a},
					edit.AddOptions{Mode: mode, SubstitutesFor: true}); err != nil {
					break
				}
			}
			if err != nil {
				continue
			}
			if show(all) != show(one) {
				// A bundle cut off by a later one is gone from the catalog and cannot be added again.
				t.Logf("%s in mode %s: one by one\n%s\nat once\n%s", list[0].Bundle.Package, mode, show(one), show(all))
				continue
			}
			same++
		}
	}
	t.Logf("%d bundles of %d packages, %d of %d batches are added whole, %d of them as well one by one", bundles,
		len(packages), whole, 3*len(packages), same)
	if bundles < 100 || whole < len(packages) || same < len(packages) {
		t.Errorf("%d bundles, %d whole, %d same", bundles, whole, same)
	}
}

// TestTakenApart removes the bundles of databases and adds them again by their declared edges.
func TestTakenApart(t *testing.T) {
	for _, name := range []string{"small", "medium", "constraint", "subs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := databaseOf(t, recorded.Part(t), name)
			defaults := map[string]string{}
			for _, p := range c.Packages {
				defaults[p.Name] = p.DefaultChannel
			}
			var list []edit.Addition
			for i := range c.Bundles {
				b := &c.Bundles[i]
				a := edit.Addition{Bundle: b, DefaultChannel: defaults[b.Package]}
				for _, ch := range c.Channels {
					for _, e := range ch.Entries {
						if ch.Package == b.Package && e.Name == b.Name {
							a.Channels = append(a.Channels, ch.Name)
						}
					}
				}
				manifest, err := b.CSV()
				if err != nil {
					t.Fatal(err)
				}
				var csv struct {
					Metadata struct{ Annotations map[string]string }
					Spec     struct {
						Replaces string
						Skips    []string
					}
				}
				if err := json.Unmarshal(manifest, &csv); err != nil {
					t.Fatal(err)
				}
				a.Replaces, a.Skips, a.SkipRange = csv.Spec.Replaces, csv.Spec.Skips,
					csv.Metadata.Annotations["olm.skipRange"]
				a.SubstitutesFor = csv.Metadata.Annotations["olm.substitutesFor"]
				list = append(list, a)
			}
			got, account, err := edit.Add(&declcfg.Catalog{}, list, edit.AddOptions{SubstitutesFor: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Packages {
				c.Packages[i].Icon = nil // the additions have no icon
			}
			if d := differences(lines(got, false), lines(c, false)); d != "" {
				t.Error(d)
			}
			if len(account.Notes)+len(account.Problems) > 0 {
				t.Error(account)
			}
			// Adding them once more fails and changes nothing: all are there.
			if _, _, err := edit.Add(c, list, edit.AddOptions{SubstitutesFor: true}); !errors.Is(err,
				edit.ErrImageExists) {
				t.Errorf("got %.200v", err)
			}
		})
	}
}
