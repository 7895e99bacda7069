package template_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
)

// A second implementation of the rules of semver templates: each is evaluated over all bundles, not along a sorted
// list.

func ruleEntry(v semver.Version, list []semver.Version) string {
	name := func(v semver.Version) string { return "a.v" + v.String() }
	highest := func(major, minor uint64) (best *semver.Version) {
		for i := range list {
			if list[i].Major == major && list[i].Minor == minor && (best == nil || list[i].GT(*best)) {
				best = &list[i]
			}
		}
		return best
	}
	text := name(v)
	if !highest(v.Major, v.Minor).EQ(v) {
		return text
	}
	var replaced *semver.Version
	for m := int64(v.Minor) - 1; m >= 0 && replaced == nil; m-- {
		replaced = highest(v.Major, uint64(m))
	}
	if replaced != nil {
		text += " <- " + name(*replaced)
	}
	var skips []string
	for _, other := range list {
		if other.Major == v.Major && other.LT(v) && (replaced == nil || !other.EQ(*replaced)) {
			skips = append(skips, name(other))
		}
	}
	if slices.Sort(skips); len(skips) > 0 {
		text += " skips " + strings.Join(skips, " ")
	}
	return text
}

func rules(majors, minors bool, preference string, lists map[string][]semver.Version) string {
	members := map[string][]semver.Version{}
	lowest := map[string]semver.Version{}
	for archetype, list := range lists {
		for _, v := range list {
			var names []string
			if majors {
				names = append(names, fmt.Sprintf("%s-v%d", archetype, v.Major))
			}
			if minors || !majors {
				names = append(names, fmt.Sprintf("%s-v%d.%d", archetype, v.Major, v.Minor))
			}
			for _, n := range names {
				members[n] = append(members[n], v)
				if l, ok := lowest[n]; !ok || v.LT(l) {
					lowest[n] = v
				}
			}
		}
	}
	if preference == "" {
		if preference = "minor"; majors && !minors {
			preference = "major"
		}
	}
	// candidate < fast < stable is also the alphabetical order.
	better := func(a, b string) bool {
		x, y := strings.Split(a, "-")[0], strings.Split(b, "-")[0]
		if x != y {
			return x > y
		}
		if !lowest[a].EQ(lowest[b]) {
			return lowest[a].GT(lowest[b])
		}
		return strings.Contains(a, ".") == (preference == "minor")
	}
	var names []string
	best := ""
	for n := range members {
		names = append(names, n)
		if best == "" || better(n, best) {
			best = n
		}
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "a: %s\n", best)
	for _, n := range names {
		b.WriteString(n + "\n")
		slices.SortFunc(members[n], semver.Version.Compare)
		for _, v := range members[n] {
			b.WriteString("  " + ruleEntry(v, lists[strings.Split(n, "-")[0]]) + "\n")
		}
	}
	return b.String()
}

func TestSemverFollowsTheRules(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		lists := map[string][]semver.Version{}
		images := map[string][]string{}
		for _, archetype := range []string{"candidate", "fast", "stable"} {
			seen := map[string]bool{}
			for range rnd.IntN(12) {
				text := fmt.Sprintf("%d.%d.%d", rnd.IntN(3), rnd.IntN(13), rnd.IntN(4))
				if rnd.IntN(4) == 0 {
					text += fmt.Sprintf("-rc.%d", rnd.IntN(12))
				}
				if seen[text] {
					continue
				}
				seen[text] = true
				lists[archetype] = append(lists[archetype], semver.MustParse(text))
				images[archetype] = append(images[archetype], text)
			}
		}
		if len(lists) == 0 {
			continue
		}
		options := map[string]any{}
		majors, minors := rnd.IntN(2) == 0, rnd.IntN(2) == 0
		options["generateMajorChannels"], options["generateMinorChannels"] = majors, minors
		preference := ""
		switch {
		case majors && minors:
			preference = []string{"", "major", "minor"}[rnd.IntN(3)]
		case majors:
			preference = []string{"", "major"}[rnd.IntN(2)]
		}
		options["defaultChannelTypePreference"] = preference
		got, err := render(t, semverText(t, options, images))
		if err != nil {
			t.Fatal(err)
		}
		if want := rules(majors, minors, preference, lists); graph(got) != want {
			t.Fatalf("%v %v\ngot\n%s\nwant\n%s", options, images, graph(got), want)
		}
		checkSemver(t, got)
	}
}

// checkSemver checks invariants of catalogs from semver templates.
func checkSemver(t *testing.T, c *declcfg.Catalog) {
	t.Helper()
	if err := c.Validate(); err != nil { // one head each, everything reached from it or skipped
		t.Fatal(err)
	}
	g, err := c.Graph()
	if err != nil {
		t.Fatal(err)
	}
	version := func(name string) semver.Version { return semver.MustParse(strings.TrimPrefix(name, "a.v")) }
	for _, ch := range g.Packages[0].Channels {
		head, err := ch.Head()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range ch.Entries {
			if version(e.Name).GT(version(head.Name)) {
				t.Fatalf("channel %s: %s is higher than the head %s", ch.Name, e.Name, head.Name)
			}
			for _, from := range append(slices.Clone(e.Skips), e.Replaces) {
				if from != "" && (version(from).Major != version(e.Name).Major || version(from).GTE(version(e.Name))) {
					t.Fatalf("channel %s: an edge from %s to %s", ch.Name, from, e.Name)
				}
			}
		}
	}
}
