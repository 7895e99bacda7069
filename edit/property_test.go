package edit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

const rounds = 80

func mustAdd(t *testing.T, c *declcfg.Catalog, list []edit.Addition, o edit.AddOptions) *declcfg.Catalog {
	t.Helper()
	before := show(c)
	got, _, err := edit.Add(c, list, o)
	if err != nil {
		t.Fatalf("%v\nadding %v to\n%s", err, names(list), before)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if show(c) != before {
		t.Fatal("the catalog that was given was changed")
	}
	return got
}

func TestPropertiesOfAdd(t *testing.T) {
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, mode := range edit.Modes() {
			o := edit.AddOptions{Mode: mode}
			list := append(randomAdditions(t, r, "p"), randomAdditions(t, r, "q")...)
			base := mustAdd(t, &declcfg.Catalog{}, randomAdditions(t, r, "base"), o)
			all := mustAdd(t, base, list, o)

			shuffled := slices.Clone(list)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if got := mustAdd(t, base, shuffled, o); show(got) != show(all) {
				t.Fatalf("seed %d, %s: the order of a batch counts:\n%s\n\n%s", seed, mode, show(all), show(got))
			}

			one := base
			for _, a := range list { // in version order
				one = mustAdd(t, one, []edit.Addition{a}, o)
			}
			// When adding one by one, a default channel declared by a lower version is lost if its channel does not
			// exist yet.
			if show(one) != show(all) {
				t.Fatalf("seed %d, %s: one by one\n%s\n\nat once\n%s", seed, mode, show(one), show(all))
			}

			removed, _, err := edit.Remove(all, []string{"q", "p"}, edit.RemoveOptions{})
			if err != nil || show(removed) != show(base) {
				t.Fatalf("seed %d, %s: %v\n%s", seed, mode, err, show(removed))
			}
			pruned, _, err := edit.Prune(all, []string{"base", "q"})
			if err != nil {
				t.Fatal(err)
			}
			again, account, err := edit.Prune(pruned, []string{"q", "base"})
			if err != nil || show(again) != show(pruned) || len(account.Changes) != 0 {
				t.Fatalf("seed %d, %s: pruning twice is not pruning once: %v", seed, mode, account)
			}
			merged, _, err := edit.Merge([]*declcfg.Catalog{pruned, all, base}, edit.MergeOptions{})
			if err != nil || show(merged) != show(all) {
				t.Fatalf("seed %d, %s: %v\n%s", seed, mode, err, show(merged))
			}
		}
	}
}

// TestPropertiesOfEdits checks for random catalogs that every edit gives a valid one, reports all changes, and does
// nothing when repeated.
func TestPropertiesOfEdits(t *testing.T) {
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 2))
		mode := edit.Modes()[r.IntN(3)]
		c := mustAdd(t, &declcfg.Catalog{}, append(randomAdditions(t, r, "p"), randomAdditions(t, r, "q")...),
			edit.AddOptions{Mode: mode})
		before := show(c)
		some := func() string { b := c.Bundles[r.IntN(len(c.Bundles))]; return b.Package + "/" + b.Name }
		version := fmt.Sprintf("%d.%d.0", 1+r.IntN(2), r.IntN(3))
		target := some()
		selection := edit.Selection{Package: "p", Versions: []string{">=", "<=", "!="}[r.IntN(3)] + version,
			HeadsOnly: r.IntN(4) == 0}
		for name, do := range map[string]func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error){
			"filter": func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.Filter(c, []edit.Selection{selection}, edit.FilterOptions{Permissive: true})
			},
			"truncate": func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.DeprecateTruncate(c, []string{target}, edit.TruncateOptions{Permissive: true})
			},
			"stranded": edit.PruneStranded,
			"mark": func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				return edit.MarkDeprecated(c, []edit.Mark{{Package: "p", Message: "m"}})
			},
		} {
			got, account, err := do(c)
			if show(c) != before {
				t.Fatalf("seed %d: %s changed what it was given", seed, name)
			}
			if err != nil {
				if name == "truncate" && strings.Contains(err.Error(), "default channel") {
					continue
				}
				t.Fatalf("seed %d: %s: %v\n%s", seed, name, err, before)
			}
			if err := got.Validate(); err != nil {
				t.Fatalf("seed %d: %s: %v\n%s\n\n%s", seed, name, err, before, show(got))
			}
			if (show(got) == before) != (len(account.Changes) == 0) {
				t.Fatalf("seed %d: %s: the account is %v for\n%s\n\n%s", seed, name, account.Changes, before, show(got))
			}
			for _, f := range account.Facts {
				if f.Why == "" {
					t.Fatalf("seed %d: %s: no reason for %v", seed, name, f)
				}
			}
			if name == "truncate" && len(account.Problems) > 0 {
				continue
			}
			again, account, err := do(got)
			if err != nil || show(again) != show(got) || len(account.Changes) > 0 {
				t.Fatalf("seed %d: %s again: %v\n%v\n%s\n\n%s", seed, name, err, account, show(got), show(again))
			}
		}
	}
}

// TestHostileAdditions adds random invalid data: it is refused or added, in bounded time, and the catalog stays valid.
func TestHostileAdditions(t *testing.T) {
	accepted := 0
	for seed := range uint64(5 * rounds) {
		r := rand.New(rand.NewPCG(seed, 3))
		version := func() string { return fmt.Sprintf("%d.%d.0", r.IntN(2), r.IntN(4)) }
		c := &declcfg.Catalog{}
		for range 3 {
			var list []edit.Addition
			for range 1 + r.IntN(5) {
				text := "p " + version()
				for _, mark := range []string{" >", " !", " !", " ^"} {
					if r.IntN(3) == 0 {
						text += mark + version()
					}
				}
				list = append(list, addition(t, text+" @"+[]string{"a", "b", "a,b"}[r.IntN(3)]))
			}
			o := edit.AddOptions{Mode: edit.Modes()[r.IntN(3)], Permissive: r.IntN(2) == 0,
				SubstitutesFor: r.IntN(2) == 0, OverwriteLatest: r.IntN(2) == 0}
			got, account, err := edit.Add(c, list, o)
			if err != nil {
				if got != nil || account != nil || o.Permissive {
					t.Fatalf("seed %d: %v", seed, err)
				}
				continue
			}
			if err := got.Validate(); err != nil {
				t.Fatalf("seed %d: %v\nadding %v to\n%s\n\n%s", seed, err, names(list), show(c), show(got))
			}
			c = got
			accepted++
		}
	}
	if accepted < rounds {
		t.Errorf("only %d edits did anything", accepted)
	}
}
