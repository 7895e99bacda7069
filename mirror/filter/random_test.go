package filter_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// packageProperty returns the property with the version of a bundle.
func packageProperty(pkg, version string) declcfg.Property {
	p, err := declcfg.NewProperty(declcfg.PropertyPackage, map[string]string{"packageName": pkg, "version": version})
	if err != nil {
		panic(err)
	}
	return p
}

// randomCatalog returns a valid catalog: channels are chains in which some entries skip bundles of their own.
func randomCatalog(r *rand.Rand) *declcfg.Catalog {
	c := &declcfg.Catalog{}
	for p := range 1 + r.Intn(3) {
		pkg := fmt.Sprintf("p%d", p)
		c.Packages = append(c.Packages, declcfg.Package{Name: pkg, DefaultChannel: "c0"})
		var chain []string
		bundle := func(version string) string {
			name := pkg + ".v" + version
			c.Bundles = append(c.Bundles,
				declcfg.Bundle{Name: name, Package: pkg, Image: "r.example.com/b/" + pkg + ":v" +
					version, Properties: []declcfg.Property{packageProperty(pkg, version)}})
			return name
		}
		skips := map[string][]string{}
		for i := range 2 + r.Intn(8) {
			version := fmt.Sprintf("%d.%d.0", 1+i/3, r.Intn(3))
			if r.Intn(5) == 0 {
				version += "-rc.1"
			}
			name := pkg + ".v" + version
			if slices.ContainsFunc(c.Bundles, func(b declcfg.Bundle) bool { return b.Name == name }) {
				continue
			}
			chain = append(chain, bundle(version))
			if r.Intn(4) == 0 {
				skips[name] = []string{bundle(fmt.Sprintf("%d.9.%d", i, i))}
			}
		}
		for ch := range 1 + r.Intn(3) {
			blob := declcfg.Channel{Name: fmt.Sprintf("c%d", ch), Package: pkg}
			from := 0
			if ch > 0 {
				from = r.Intn(len(chain))
			}
			for i, name := range chain[from:] {
				e := declcfg.ChannelEntry{Name: name, Skips: skips[name]}
				if i > 0 || from > 0 && r.Intn(2) == 0 { // a channel may continue another one
					e.Replaces = chain[from+i-1]
				}
				blob.Entries = append(blob.Entries, e)
				for _, s := range e.Skips {
					blob.Entries = append(blob.Entries, declcfg.ChannelEntry{Name: s})
				}
			}
			r.Shuffle(len(blob.Entries), func(i, j int) {
				blob.Entries[i], blob.Entries[j] = blob.Entries[j], blob.Entries[i]
			})
			c.Channels = append(c.Channels, blob)
		}
	}
	return c
}

// randomOperator returns an entry that may ask for anything.
func randomOperator(r *rand.Rand) imageset.Operator {
	op := imageset.Operator{Full: r.Intn(5) == 0}
	version := func() string {
		return []string{"", "1.0.0", "1.1", "2", "2.1.0-rc.1", "3.0.0", "1.9.1"}[r.Intn(7)]
	}
	for p := range r.Intn(4) {
		pkg := imageset.Package{Name: fmt.Sprintf("p%d", p)}
		if !op.Full && r.Intn(2) == 0 {
			pkg.MinVersion, pkg.MaxVersion = version(), version()
		}
		for ch := range r.Intn(3) {
			pkg.Channels = append(pkg.Channels, imageset.Channel{Name: fmt.Sprintf("c%d", ch)})
		}
		op.Packages = append(op.Packages, pkg)
	}
	return op
}

func heads(entries []filter.Entry) []string {
	c := declcfg.Channel{}
	for _, e := range entries {
		c.Entries = append(c.Entries, e.ChannelEntry)
	}
	return c.Heads()
}

// Whatever is asked for: what is kept is a part of the catalog with one head per channel, the published catalog has the
// same bundles and is valid unless it is refused, and neither the order of blobs nor a second time changes anything.
func TestInvariants(t *testing.T) {
	kept := 0
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		c, op := randomCatalog(r), randomOperator(r)
		if err := c.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []filter.Options{{}, {AutoDefaultChannel: true}, {Dependencies: true}} {
			got, err := o.Apply(c, op)
			if after, _ := json.Marshal(c); string(after) != string(before) {
				t.Fatalf("seed %d: the source has changed", seed)
			}
			if err != nil {
				continue
			}
			kept++
			checkInvariants(t, seed, c, op, got)
			shuffled := *c
			shuffled.Bundles, shuffled.Channels = slices.Clone(c.Bundles), slices.Clone(c.Channels)
			slices.Reverse(shuffled.Bundles)
			slices.Reverse(shuffled.Channels)
			again, err := o.Apply(&shuffled, op)
			if err != nil || !reflect.DeepEqual(again.Kept, got.Kept) || again.Refused() != got.Refused() {
				t.Errorf("seed %d: another order of blobs gives another answer", seed)
			}
		}
	}
	if kept < 400 {
		t.Errorf("only %d answers", kept)
	}
}

func checkInvariants(t *testing.T, seed int64, c *declcfg.Catalog, op imageset.Operator, got *filter.Result) {
	t.Helper()
	source := map[string]map[string]declcfg.ChannelEntry{}
	for _, ch := range c.Channels {
		source[ch.Package+"/"+ch.Name] = map[string]declcfg.ChannelEntry{}
		for _, e := range ch.Entries {
			source[ch.Package+"/"+ch.Name][e.Name] = e
		}
	}
	for name, pkg := range got.Kept {
		for channel, entries := range pkg.Channels {
			if h := heads(entries); len(entries) > 0 && len(h) != 1 {
				t.Errorf("seed %d: %s/%s has the heads %v", seed, name, channel, h)
			}
			for _, e := range entries {
				if want, ok := source[name+"/"+channel][e.Name]; !ok || !reflect.DeepEqual(want, e.ChannelEntry) {
					t.Errorf("seed %d: %s/%s: entry %+v was %+v", seed, name, channel, e, want)
				}
			}
			if op.Full && len(entries) != len(source[name+"/"+channel]) {
				t.Errorf("seed %d: %s/%s is not full", seed, name, channel)
			}
		}
	}
	if got.WholeCatalog || got.Refused() {
		return
	}
	if err := got.Catalog.Validate(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	var published, wanted []string
	for _, b := range got.Catalog.Bundles {
		published = append(published, b.Name)
	}
	for _, pkg := range got.Kept {
		wanted = append(wanted, pkg.Bundles...)
	}
	slices.Sort(published)
	slices.Sort(wanted)
	if !slices.Equal(published, wanted) {
		t.Errorf("seed %d: published %v, kept %v", seed, published, wanted)
	}
}
