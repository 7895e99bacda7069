package graph

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// Every span gets the first track without an overlap.
func TestTracks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var tracks trackSet
		var taken [lastTrack][][2]int
		for range 300 {
			first := r.IntN(200)
			span := [2]int{first, first + r.IntN(1+r.IntN(100))}
			want := 0
			for want < lastTrack && slices.ContainsFunc(taken[want],
				func(s [2]int) bool { return span[0] <= s[1] && s[0] <= span[1] }) {
				want++
			}
			if free := tracks.free(span[0], span[1]); free != want {
				t.Fatalf("%v: track %d is free, want %d", span, free, want)
			}
			if got := tracks.occupyTrack(span[0], span[1]); got != want {
				t.Fatalf("%v: on track %d, want %d", span, got, want)
			}
			if want < lastTrack {
				taken[want] = append(taken[want], span)
			}
		}
	}
}

// The time for a channel grows linearly with its length: a linear search for spans took five seconds for 40,000
// bundles.
func BenchmarkLongChannel(b *testing.B) {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "a", DefaultChannel: "x"}}}
	ch := declcfg.Channel{Name: "x", Package: "a"}
	for i := range 40_000 {
		name := func(i int) string { return fmt.Sprintf("a.v0.0.%d", i) }
		e := declcfg.ChannelEntry{Name: name(i)}
		if i > 2 {
			e.Replaces, e.Skips = name(i-2), []string{name(i - 1)}
		}
		ch.Entries = append(ch.Entries, e)
		p, err := declcfg.NewProperty(declcfg.PropertyPackage,
			property.Package{PackageName: "a", Version: fmt.Sprintf("0.0.%d", i)})
		if err != nil {
			b.Fatal(err)
		}
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: name(i), Package: "a", Properties: []declcfg.Property{p}})
	}
	c.Channels = []declcfg.Channel{ch}
	for b.Loop() {
		if err := (Options{}).WriteSVG(io.Discard, c); err != nil {
			b.Fatal(err)
		}
	}
}
