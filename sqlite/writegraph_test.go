package sqlite_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/sqlite"
)

// entries parses the entries of a channel from lines "name [replaces] [-skip...]".
func entries(lines ...string) []declcfg.ChannelEntry {
	var out []declcfg.ChannelEntry
	for _, line := range lines {
		words := strings.Fields(line)
		e := declcfg.ChannelEntry{Name: words[0]}
		for _, w := range words[1:] {
			if skip, ok := strings.CutPrefix(w, "-"); ok {
				e.Skips = append(e.Skips, skip)
			} else {
				e.Replaces = w
			}
		}
		out = append(out, e)
	}
	return out
}

// pkg returns a package with a bundle for every entry. The first channel is the default one.
func pkg(name string, channels ...declcfg.Channel) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: name, DefaultChannel: channels[0].Name}}}
	names := map[string]bool{}
	for _, ch := range channels {
		ch.Package = name
		c.Channels = append(c.Channels, ch)
		for _, e := range ch.Entries {
			names[e.Name] = true
		}
	}
	for i, bundle := range slices.Sorted(maps.Keys(names)) {
		p, err := declcfg.NewProperty(declcfg.PropertyPackage,
			property.Package{PackageName: name, Version: fmt.Sprintf("1.%d.0", i)})
		if err != nil {
			panic(err) // strings always encode
		}
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: bundle, Package: name,
			Image: "example.test/" + name + "/b:" + fmt.Sprint(i), Properties: []declcfg.Property{p}})
	}
	return c
}

func channel(name string, lines ...string) declcfg.Channel {
	return declcfg.Channel{Name: name, Entries: entries(lines...)}
}

// checkEdges compares a written database with its catalog in three ways: read by this package, read as opm does, and by
// the recursive queries of Facts, which implement opm's rule in SQL.
func checkEdges(t *testing.T, path string, c *declcfg.Catalog) {
	t.Helper()
	for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
		back, _, err := read(t, path, sqlite.Options{Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		sections := diff.Sections()
		if compat == sqlite.CompatOPM {
			// opm takes the names of images from the manifests only, which a file-based catalog may lack.
			sections = slices.DeleteFunc(sections, func(s diff.Section) bool { return s == diff.Images })
		}
		sameCatalog(t, c, back, sections...)
	}
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	facts, err := db.Facts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range c.Channels {
		f := facts.Packages[ch.Package].Channels[ch.Name]
		want := &sqlite.ChannelFacts{Head: f.Head, Entries: map[string]bool{}, Edges: map[sqlite.Edge]bool{},
			Chain: map[sqlite.Edge]bool{}}
		below := map[string]bool{}
		for _, e := range ch.Entries {
			want.Entries[e.Name] = true
			if e.Replaces != "" {
				want.Edges[sqlite.Edge{From: e.Name, To: e.Replaces}] = true
				want.Chain[sqlite.Edge{From: e.Name, To: e.Replaces}] = true
				below[e.Replaces] = true
			}
			for _, skip := range e.Skips {
				want.Edges[sqlite.Edge{From: e.Name, To: skip}] = true
				below[skip] = true
			}
		}
		if below[f.Head] || !want.Entries[f.Head] {
			t.Errorf("channel %s: head %q", ch.Name, f.Head)
		}
		if !maps.Equal(f.Entries, want.Entries) || !maps.Equal(f.Edges, want.Edges) || !maps.Equal(f.Chain,
			want.Chain) {
			t.Errorf("channel %s: SQL says %+v, the catalog %+v", ch.Name, f, want)
		}
	}
}

func TestEdges(t *testing.T) {
	for name, c := range map[string]*declcfg.Catalog{
		"one bundle":                             pkg("p", channel("a", "v1")),
		"skip before what is replaced":           pkg("p", channel("a", "v1", "v2", "v3 v1 -v2")),
		"skip of what is replaced":               pkg("p", channel("a", "v1", "v2 v1 -v1")),
		"skip of a bundle that is nowhere":       pkg("p", channel("a", "v2 -v0 -v1")),
		"replaces a bundle that is nowhere":      pkg("p", channel("a", "v2 v1 -v0")),
		"replaces and skips the same, nowhere":   pkg("p", channel("a", "v2 v1 -v1")),
		"skipped bundle that replaces the same":  pkg("p", channel("a", "v1", "v2 v1", "v3 v1 -v2")),
		"skipped chain":                          pkg("p", channel("a", "v1", "v2 v1", "v3 v2", "v4 v1 -v2 -v3")),
		"skipped chain that ends nowhere":        pkg("p", channel("a", "v1", "v2 v0", "v3 v1 -v2")),
		"skipped bundle that skips":              pkg("p", channel("a", "v1", "v2 -v1", "v3 -v2 -v1")),
		"skipped circle":                         pkg("p", channel("a", "v1 v2", "v2 v1", "v3 -v1 -v2")),
		"skipped bundle that replaces itself":    pkg("p", channel("a", "v1 v1", "v3 -v1")),
		"skipped bundle that replaces a skipped": pkg("p", channel("a", "v0 -x", "v1", "v2 v1", "v3 -v2 -v1 -v0")),
		"replaces the head of the other channel": pkg("p", channel("b", "v2 v1"), channel("a", "v1 v0", "v0")),
		"skips the bundles of the other channel": pkg("p", channel("b", "v3 v2 -v0 -v1"),
			channel("a", "v0", "v1 v0", "v2 v1")),
		"two channels that lead to each other":     pkg("p", channel("a", "v1 v2"), channel("b", "v2 v1")),
		"skips what is only skipped in the other":  pkg("p", channel("a", "v3 -v1"), channel("b", "v2 v0 -v1", "v1 v0")),
		"replaces what is only skipped, the other": pkg("p", channel("a", "v3 v1"), channel("b", "v2 -v1", "v1 -v0")),
		"same bundles, other edges":                pkg("p", channel("a", "v1", "v2 v1"), channel("b", "v2 -v1", "v1")),
		"two skips of one bundle":                  pkg("p", channel("a", "v1", "v2 -v1", "v3 v2 -v1")),
		"default channel last by name, after beta": pkg("p", channel("stable", "v2 v1", "v1"),
			channel("beta", "v3 v2", "v2 v1", "v1")),
		"chain ends at what another entry replaces": pkg("p", channel("a", "v3 v2", "v2 v1 -x", "v1", "x v1")),
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := create(t, c.Blobs(), sqlite.WriteOptions{})
			checkEdges(t, path, c)
		})
	}
}

// Every valid upgrade graph survives writing and reading.
func TestRandomEdges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := &declcfg.Catalog{}
	valid := 0
	for tries := 0; valid < 300; tries++ {
		if tries > 200_000 {
			t.Fatal("too few valid graphs")
		}
		c := randomPackage(random, fmt.Sprintf("p%03d", valid))
		if c.Validate() != nil {
			continue
		}
		valid++
		all.Append(c)
	}
	path, written := create(t, all.Blobs(), sqlite.WriteOptions{})
	if written.Packages != valid {
		t.Errorf("%d packages of %d", written.Packages, valid)
	}
	checkEdges(t, path, all)
	other, _ := create(t, all.Blobs(), sqlite.WriteOptions{})
	sameFileContent(t, path, other)
}

func randomPackage(random *rand.Rand, name string) *declcfg.Catalog {
	bundle := func() string { return fmt.Sprintf("%s.v%d", name, random.IntN(7)) }
	var channels []declcfg.Channel
	for i := range 1 + random.IntN(3) {
		ch := declcfg.Channel{Name: string(rune('a' + i))}
		seen := map[string]bool{}
		for range 1 + random.IntN(6) {
			e := declcfg.ChannelEntry{Name: bundle()}
			if seen[e.Name] {
				continue
			}
			seen[e.Name] = true
			if random.IntN(3) > 0 {
				e.Replaces = bundle()
			}
			for range random.IntN(3) {
				e.Skips = append(e.Skips, bundle())
			}
			ch.Entries = append(ch.Entries, e)
		}
		channels = append(channels, ch)
	}
	return pkg(name, channels...)
}

// The head is the first entry with the least depth, and depth grows along the chain.
func TestDepths(t *testing.T) {
	c := pkg("p", channel("a", "v1", "v2 v1", "x v1", "y", "v3 v2 -x -y"))
	path, _ := create(t, c.Blobs(), sqlite.WriteOptions{})
	got := rowsInOrder(t, path,
		`SELECT e.entry_id, e.operatorbundle_name, e.depth, coalesce(r.entry_id, '') FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces ORDER BY e.entry_id`)
	want := "1 v3 0 6\n2 x 1 \n3 v3 1 2\n4 y 2 \n5 v3 2 4\n6 v2 3 7\n7 v1 4 \n8 x 0 7"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A long channel is laid out in linear time.
func TestLongChain(t *testing.T) {
	const n = 20_000
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("v%d", i)
		if i > 0 {
			lines[i] += fmt.Sprintf(" v%d", i-1)
		}
	}
	c := pkg("p", channel("a", lines...))
	path, written := create(t, c.Blobs(), sqlite.WriteOptions{})
	if written.Entries != n {
		t.Errorf("%d entries", written.Entries)
	}
	back, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameCatalog(t, c, back)
}
