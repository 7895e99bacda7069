package edit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// longChain returns bundles that each replace the previous one.
func longChain(t testing.TB, n int) []edit.Addition {
	list := make([]edit.Addition, n)
	for i := range list {
		list[i] = edit.Addition{Bundle: newBundle(t, "p", fmt.Sprintf("1.%d.0", i)), Channels: []string{"a"}}
		if i > 0 {
			list[i].Replaces = list[i-1].Bundle.Name
		}
	}
	return list
}

// The cost grows linearly with the input.
func TestLongChainsTakeLinearTime(t *testing.T) {
	for _, mode := range edit.Modes() {
		added := func(n int) func() {
			list := longChain(t, n)
			return func() {
				if _, _, err := edit.Add(&declcfg.Catalog{}, list, edit.AddOptions{Mode: mode}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ratio := cputime.Ratio(added(500), added(4_000)); ratio > 24 {
			t.Errorf("mode %s: eight times the bundles take %.1f times as long", mode, ratio)
		}
	}
}

// A permissive edit leaves unreachable bundles out one by one, or the whole batch of a channel if there are many.
func TestLooseBundlesTakeLinearTime(t *testing.T) {
	for what, channel := range map[string]func(i int) string{
		"in one channel": func(int) string { return "a" },
		"in their own":   func(i int) string { return fmt.Sprint("c", i) },
	} {
		added := func(n int) func() {
			chain := longChain(t, 2*n)
			c, _, err := edit.Add(&declcfg.Catalog{}, chain[n:], edit.AddOptions{Mode: edit.SemVer})
			if err != nil {
				t.Fatal(err)
			}
			loose := chain[:n]
			for i := range loose {
				loose[i].Replaces, loose[i].Channels = "", []string{channel(i)}
			}
			return func() {
				if _, _, err := edit.Add(c, loose, edit.AddOptions{Permissive: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ratio := cputime.Ratio(added(250), added(2_000)); ratio > 24 {
			t.Errorf("%s: eight times the bundles take %.1f times as long", what, ratio)
		}
	}
}

func TestLongChains(t *testing.T) {
	const n = 10_000
	step := func(what string, f func()) {
		t.Helper()
		t.Log(what)
		f()
	}
	plain := longChain(t, n)
	var c *declcfg.Catalog
	for _, mode := range edit.Modes() {
		step("add in mode "+string(mode), func() {
			var err error
			if c, _, err = edit.Add(&declcfg.Catalog{}, plain, edit.AddOptions{Mode: mode}); err != nil {
				t.Fatal(err)
			}
			if len(c.Channels[0].Entries) != n {
				t.Fatalf("got %d entries", len(c.Channels[0].Entries))
			}
		})
	}
	step("one more", func() {
		got, _, err := edit.Add(c, additionsOf(t, fmt.Sprintf("p 2.0.0 >1.%d.0 @a", n-1)), edit.AddOptions{})
		if err != nil || len(got.Bundles) != n+1 {
			t.Errorf("got %.200v", err)
		}
	})
	step("truncate", func() {
		got, _, err := edit.DeprecateTruncate(c, []string{imageName("p", "1.7500.0")}, edit.TruncateOptions{})
		if err != nil || len(got.Bundles) != n-7500 {
			t.Errorf("got %v", err)
		}
	})
	step("filter", func() {
		got, _, err := edit.Filter(c, []edit.Selection{{Package: "p", Versions: "<1.10.0 || >1.9500.0"}},
			edit.FilterOptions{})
		if err != nil || len(got.Bundles) != 10+n-9501 {
			t.Errorf("got %v", err)
		}
	})
	step("merge", func() {
		if _, _, err := edit.Merge([]*declcfg.Catalog{c, c}, edit.MergeOptions{}); err != nil {
			t.Error(err)
		}
	})
	step("a circle", func() {
		plain[0].Replaces = plain[n-1].Bundle.Name
		if _, _, err := edit.Add(&declcfg.Catalog{}, plain, edit.AddOptions{}); err == nil ||
			!strings.Contains(err.Error(), "Cycle detected, p.v1.0.0 replaces p.v1.9999.0") {
			t.Errorf("got %.200v", err)
		}
	})
	step("bundles that replace nothing that is there, permissively", func() {
		for i := range plain {
			plain[i].Replaces = fmt.Sprintf("p.v1.%d.1", i)
			plain[i].Channels = []string{"a", fmt.Sprintf("b%d", i%5000)}
		}
		got, account, err := edit.Add(&declcfg.Catalog{}, plain, edit.AddOptions{Permissive: true})
		if err != nil || len(got.Bundles) != 0 || len(account.Problems) < 5000 {
			t.Errorf("got %v, %v", err, len(got.Bundles))
		}
	})
	step("patches", func() {
		for i := range plain {
			plain[i] = edit.Addition{Bundle: newBundle(t, "p", fmt.Sprintf("1.0.%d", i)), Channels: []string{"a"}}
		}
		_, _, err := edit.Add(&declcfg.Catalog{}, plain, edit.AddOptions{Mode: edit.SemVerSkipPatch})
		if !errors.Is(err, edit.ErrLimit) || !strings.Contains(err.Error(),
			"channel a of package p has more than 2000 patches of the minor version 1.0") {
			t.Errorf("got %.200v", err)
		}
		got, _, err := edit.Add(&declcfg.Catalog{}, plain[:200], edit.AddOptions{Mode: edit.SemVerSkipPatch})
		if err != nil || len(got.Bundles) != 200 || len(got.Channels[0].Entries[199].Skips) != 199 {
			t.Errorf("got %.200v", err)
		}
	})
}

// Bundles can multiply channels, chains and skips: the limits apply before the result is built.
func TestAdditionsThatMultiply(t *testing.T) {
	many := func(n int, format string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf(format, i)
		}
		return out
	}
	skipping := func(n, channels int) []edit.Addition {
		list := longChain(t, n)
		for i := range list {
			list[i].Channels, list[i].DefaultChannel = many(channels, "c%d"), "c0"
			for _, below := range list[:max(0, i-1)] {
				list[i].Skips = append(list[i].Skips, below.Bundle.Name)
			}
		}
		return list
	}
	one := func(channels, skips int) []edit.Addition {
		list := longChain(t, 1)
		list[0].DefaultChannel = "c0"
		list[0].Channels, list[0].Skips = many(channels, "c%d"), many(skips, "x%d")
		return list
	}
	for _, c := range []struct {
		name string
		list []edit.Addition
		mode edit.Mode
		text string
	}{
		{"a channel too many", one(1001, 0), edit.Replaces, "more than 1000 channels"},
		{"as many channels as there may be", one(1000, 100), edit.Replaces, ""},
		{"skips in many channels", one(1000, 10_000), edit.Replaces, "entries and skips"},
		{"skips in chains in many channels", skipping(300, 30), edit.Replaces, "entries and skips"},
		{"skips in chains", skipping(300, 1), edit.Replaces, ""},
		{"skips do not count in mode semver", skipping(300, 30), edit.SemVer, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := edit.Add(&declcfg.Catalog{}, c.list, edit.AddOptions{Mode: c.mode})
			if c.text == "" {
				if err != nil {
					t.Errorf("got %.300v", err)
				}
				return
			}
			if !errors.Is(err, edit.ErrLimit) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %.300v, want %s", err, c.text)
			}
		})
	}
}
