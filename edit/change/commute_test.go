package change_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
)

// rounds is the number of random sequences.
const rounds = 10

// adding returns an edit that adds bundles.
func adding(list []edit.Addition, o edit.AddOptions) change.Edit {
	e := change.Edit{Whole: []string{}}
	for _, a := range list {
		e.Manifests = append(e.Manifests, a.Bundle.Package)
	}
	e.Apply = func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		o := o
		o.Origins, o.Manifests = s.Origins, s.Manifests
		return edit.Add(s.Catalog, list, o)
	}
	return e
}

// pure returns an edit that needs no manifests.
func pure(do func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error)) change.Edit {
	return change.Edit{Whole: []string{},
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return do(s.Catalog)
		}}
}

// withManifest gives an added bundle a ClusterServiceVersion that matches the addition.
func withManifest(t testing.TB, a edit.Addition) edit.Addition {
	t.Helper()
	p, err := a.Bundle.PackageProperty()
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{}
	if a.SkipRange != "" {
		annotations["olm.skipRange"] = a.SkipRange
	}
	if a.SubstitutesFor != "" {
		annotations[declcfg.AnnotationSubstitutesFor] = a.SubstitutesFor
	}
	csv, err := json.Marshal(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": a.Bundle.Name, "annotations": annotations},
		"spec":     map[string]any{"version": p.Version, "replaces": a.Replaces, "skips": a.Skips},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := *a.Bundle
	b.Properties = append(slices.Clone(b.Properties), declcfg.NewBundleObject(csv))
	b.HasObjects = true
	a.Bundle = &b
	return a
}

// randomBatch returns additions that are often valid, or a bundle that replaces existing ones.
func randomBatch(t testing.TB, r *rand.Rand, c *declcfg.Catalog, pkg string, manifests bool) []edit.Addition {
	t.Helper()
	var list []edit.Addition
	add := func(text string) {
		a := edittest.Addition(t, pkg+" "+text+" @"+[]string{"a", "b", "a,b", "c", "a,c"}[r.IntN(5)])
		if manifests {
			a = withManifest(t, a)
		}
		list = append(list, a)
	}
	var there []string
	for i := range c.Bundles {
		if b := &c.Bundles[i]; b.Package == pkg {
			there = append(there, strings.TrimPrefix(b.Name, pkg+".v"))
		}
	}
	if len(there) > 1 && r.IntN(2) == 0 {
		text := fmt.Sprintf("%d.0.0", 3+len(there)) + " >" + there[r.IntN(len(there))]
		for range r.IntN(3) {
			text += " !" + there[r.IntN(len(there))]
		}
		add(text)
		return list
	}
	version := func() string { return fmt.Sprintf("%d.%d.0", r.IntN(3), r.IntN(5)) }
	for range 1 + r.IntN(4) {
		text := version()
		for _, mark := range []string{" >", " !", " !"} {
			if r.IntN(2) == 0 {
				text += mark + version()
			}
		}
		if r.IntN(8) == 0 {
			text += " ^" + version()
		}
		if r.IntN(4) == 0 {
			text += " ~<" + version()
		}
		add(text)
	}
	return list
}

// randomEdit returns a random edit of a catalog.
func randomEdit(t testing.TB, r *rand.Rand, c *declcfg.Catalog, manifests bool) (string, change.Edit) {
	t.Helper()
	some := func() *declcfg.Bundle { return &c.Bundles[r.IntN(len(c.Bundles))] }
	n := r.IntN(12)
	if len(c.Bundles) < 4 {
		n = 0
	}
	switch {
	case n < 7:
		o := edit.AddOptions{Mode: []edit.Mode{edit.Replaces, edit.Replaces, edit.Replaces, edit.SemVer,
			edit.SemVerSkipPatch}[r.IntN(5)],
			Permissive: true, SubstitutesFor: r.IntN(2) == 0, OverwriteLatest: r.IntN(2) == 0}
		list := randomBatch(t, r, c, []string{"p", "p", "q"}[r.IntN(3)], manifests)
		if r.IntN(3) == 0 {
			for i := range list {
				list[i].Bundle.Image += "-new"
			}
		}
		return fmt.Sprintf("add %+v %v", o, edittest.Names(list)), adding(list, o)
	case n == 7:
		b := some()
		name := b.Package + "/" + b.Name
		return "truncate " + name, pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.DeprecateTruncate(c, []string{name}, edit.TruncateOptions{Permissive: true})
		})
	case n == 8:
		keep := edit.Selection{Package: "p",
			Versions: []string{">=", "<=", "!="}[r.IntN(3)] + fmt.Sprintf("%d.%d.0", 1+r.IntN(2), r.IntN(3))}
		return fmt.Sprintf("filter %+v", keep), pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Filter(c, []edit.Selection{keep, {Package: "q"}}, edit.FilterOptions{Permissive: true})
		})
	case n == 9:
		b := some()
		p := edit.Promotion{Package: b.Package, Bundle: b.Name, Channel: []string{"a", "b", "d"}[r.IntN(3)],
			Default: r.IntN(2) == 0}
		return fmt.Sprintf("promote %+v", p), pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Promote(c, []edit.Promotion{p})
		})
	case n == 10:
		name := []string{"p", "q"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			return "prune " + name, pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.Prune(c, []string{name, "q"})
			})
		}
		return "rm " + name, pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Remove(c, []string{name}, edit.RemoveOptions{Permissive: true})
		})
	}
	return "prune-stranded", change.PruneStranded()
}

// both are a database and the directory that it was migrated to.
type both struct {
	at    [2]string
	after [2]*declcfg.Catalog
	errs  [2]error
	edits int // number of those that changed something
}

func newBoth(t testing.TB) *both {
	dir := t.TempDir()
	return &both{at: [2]string{filepath.Join(dir, "index.db"), filepath.Join(dir, "catalog")}}
}

// do applies an edit to both.
func (b *both) do(t testing.TB, edits [2]change.Edit) {
	t.Helper()
	for j, kind := range kinds {
		r, err := inPlace(b.at[j], kind, edits[j])
		b.errs[j] = err
		if err == nil && !r.Unchanged {
			b.edits++
		}
		b.after[j] = &declcfg.Catalog{}
		if exists(b.at[j]) {
			b.after[j] = read(t, b.at[j])
		}
		if err := b.after[j].Validate(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// differ describes the difference between the two.
func (b *both) differ() string {
	if (b.errs[0] == nil) != (b.errs[1] == nil) {
		return fmt.Sprintf("database: %v\ndirectory: %v", b.errs[0], b.errs[1])
	}
	return different(b.after[0], b.after[1])
}

// TestEditsCommuteWithMigration applies random edits to a database and to the directory migrated from it: editing
// before or after the migration gives the same catalog.
func TestEditsCommuteWithMigration(t *testing.T) {
	done := 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 4))
		b := newBoth(t)
		c, log := &declcfg.Catalog{}, ""
		for range 8 {
			what, e := randomEdit(t, r, c, true)
			log += what + "\n"
			b.do(t, [2]change.Edit{e, e})
			if d := b.differ(); d != "" {
				t.Fatalf("seed %d: %s\n%s\nbefore:\n%s", seed, log, d, edittest.Show(c))
			}
			c = b.after[0]
		}
		done += b.edits
	}
	if done < 8*rounds {
		t.Errorf("only %d edits changed something", done)
	}
}

// TestEditsCommuteButForOwnEdges does the same for bundles without manifests. There is one exception: the edges that a
// bundle declares for itself are in a database and not in a directory, and count where no channel has edges of it. If
// the edit of the directory receives them, it gives the same result.
func TestEditsCommuteButForOwnEdges(t *testing.T) {
	done, exceptions := 0, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := newBoth(t)
		c, log := &declcfg.Catalog{}, ""
		for range 8 {
			what, e := randomEdit(t, r, c, false)
			log += what + "\n"
			var own edit.Origins
			inDatabase, inDirectory := e, e
			inDatabase.Apply = func(ctx context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
				own = s.Origins
				return e.Apply(ctx, s)
			}
			if exists(b.at[1]) {
				alone := filepath.Join(t.TempDir(), "catalog")
				if err := os.CopyFS(alone, os.DirFS(b.at[1])); err != nil {
					t.Fatal(err)
				}
				_, err := inPlace(alone, change.Directory, e)
				inDirectory.Apply = func(ctx context.Context,
					s *change.State) (*declcfg.Catalog, *edit.Account, error) {
					told := *s
					told.Origins = own
					return e.Apply(ctx, &told)
				}
				b.do(t, [2]change.Edit{inDatabase, inDirectory})
				if (err == nil) != (b.errs[0] == nil) || different(b.after[0], read(t, alone)) != "" {
					exceptions++
					if !originsMatter(c, own) {
						t.Errorf("seed %d: %s\nno bundle has edges of its own that no channel has:\n%s", seed, log,
							edittest.Show(c))
					}
				}
			} else {
				b.do(t, [2]change.Edit{inDatabase, inDirectory})
			}
			if d := b.differ(); d != "" {
				t.Fatalf("seed %d: %s\n%s\nbefore:\n%s", seed, log, d, edittest.Show(c))
			}
			c = b.after[0]
		}
		done += b.edits
	}
	if exceptions == 0 || exceptions > done/20 {
		t.Errorf("%d exceptions of %d edits", exceptions, done)
	}
}

// originsMatter reports whether some bundle declares edges and has none in any channel, or substitutes for another.
func originsMatter(c *declcfg.Catalog, own edit.Origins) bool {
	edges := map[edit.Name]bool{}
	for _, ch := range c.Channels {
		for _, e := range ch.Entries {
			if e.Replaces != "" || len(e.Skips) > 0 {
				edges[edit.Name{Package: ch.Package, Bundle: e.Name}] = true
			}
		}
	}
	for name, o := range own {
		if !edges[name] && (o.Replaces != "" || len(o.Skips) > 0) || o.SubstitutesFor != "" {
			return true
		}
	}
	return false
}
