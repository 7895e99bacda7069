package declcfg_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// entries reads "NAME>REPLACES!SKIP!SKIP NAME ...".
func entries(text string) (out []declcfg.ChannelEntry) {
	for _, word := range strings.Fields(text) {
		parts := strings.Split(word, "!")
		e := declcfg.ChannelEntry{Skips: parts[1:]}
		e.Name, e.Replaces, _ = strings.Cut(parts[0], ">")
		out = append(out, e)
	}
	return out
}

func TestUpgrades(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "heads [], chain [c], again -1, cyclic false",
		"a b>a c>b":           "heads [c], chain [c b a], again -1, cyclic false",
		"c>b b>a":             "heads [c], chain [c b a], again -1, cyclic false",
		"c>b b>a!x x d!c":     "heads [d], chain [c b a], again -1, cyclic false",
		"c>b b>a a>b":         "heads [c], chain [c b a], again 1, cyclic true",
		"c>c":                 "heads [], chain [c], again 0, cyclic true",
		"c>b b!a a!b":         "heads [c], chain [c b], again -1, cyclic true",
		"c>end b>end end":     "heads [c b], chain [c], again -1, cyclic false",
		"c>b c>c b":           "heads [c], chain [c b], again -1, cyclic false",
		"d c>b!b!b b a a e!a": "heads [d c e], chain [c b], again -1, cyclic false",
	} {
		u := declcfg.UpgradesOf(entries(text))
		chain, again := u.Chain("c", func(name string) bool { return name == "end" })
		if got := fmt.Sprintf("heads %v, chain %v, again %d, cyclic %v", u.Heads(), chain, again, u.Cyclic()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	u := declcfg.UpgradesOf(entries("c>b!a!b a"))
	if !u.OnlySkipped("a") || u.OnlySkipped("b") || !u.Skipped("b") || u.OnlySkipped("c") || u.Entry("b") != nil ||
		u.Entry("a").Name != "a" || u.IsHead("x") {
		t.Error("what leads to a name is wrong")
	}
}

// Every question takes time linear in the edges.
func TestUpgradesOfManyEntries(t *testing.T) {
	list := make([]declcfg.ChannelEntry, 100_000)
	for i := range list {
		list[i] = declcfg.ChannelEntry{Name: fmt.Sprint(i), Replaces: fmt.Sprint(i + 1), Skips: []string{fmt.Sprint(i + 2), "x"}}
	}
	start := time.Now()
	u := declcfg.UpgradesOf(list)
	chain, again := u.Chain("0", nil)
	if !slices.Equal(u.Heads(), []string{"0"}) || len(chain) != len(list)+1 || again != -1 || u.Cyclic() {
		t.Errorf("%v, %d, %d", u.Heads(), len(chain), again)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCycle(t *testing.T) {
	for name, test := range map[string]struct {
		entries []declcfg.ChannelEntry
		want    []string
	}{
		"none":               {[]declcfg.ChannelEntry{{Name: "b", Replaces: "a"}, {Name: "a"}}, nil},
		"itself":             {[]declcfg.ChannelEntry{{Name: "a", Replaces: "a"}}, []string{"a"}},
		"two, and one below": {[]declcfg.ChannelEntry{{Name: "c", Replaces: "b"}, {Name: "b", Skips: []string{"c", "a"}}}, []string{"c", "b"}},
		"three, one above":   {[]declcfg.ChannelEntry{{Name: "d", Replaces: "c"}, {Name: "c", Replaces: "b"}, {Name: "b", Skips: []string{"a"}}, {Name: "a", Replaces: "c"}}, []string{"c", "b", "a"}},
	} {
		got := declcfg.UpgradesOf(test.entries).Cycle()
		if i := slices.Index(got, append(test.want, "")[0]); i > 0 { // a cycle begins anywhere
			got = slices.Concat(got[i:], got[:i])
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
