package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// annotated are the groups that the annotations of an image with these groups name.
func annotated(groups [][]string) [][]string {
	var all [][]string
	for _, g := range groups {
		var names []string
		for _, pkg := range g {
			if pkg != "" {
				names = append(names, pkg)
			}
		}
		if names == nil {
			names = []string{""}
		}
		all = append(all, names)
	}
	return all
}

// With the previous image's groups a change of size moves no package, however many there are.
func TestOneEditOfAPreviousImage(t *testing.T) {
	most := map[string]int{"added": 1, "removed": 2, "changed": 1, "of another size": 1}
	for i, c := range shelves {
		if c.packages == 0 {
			continue
		}
		t.Run(fmt.Sprintf("%d packages in %d layers", c.packages, c.budget), func(t *testing.T) {
			s := newShelf(uint64(i), c.packages)
			groups := Divide(s.weights(), c.budget)
			before := s.layers(t, groups, c.budget)
			edits := s.edits()
			names := slices.Sorted(maps.Keys(edits))
			for range c.edits {
				what := names[s.r.IntN(len(names))]
				if len(s.sizes) == 1 {
					what = "added"
				}
				free := s.sizes[""] // it is in no annotation if it shares a layer, and may move then
				edits[what]()
				was := groups
				var ok bool
				if groups, ok = Keep(annotated(was), s.weights(), c.budget); !ok {
					t.Fatalf("package %s: nothing was kept", what)
				}
				after := s.layers(t, groups, c.budget)
				limit := most[what]
				if _, there := s.sizes[""]; (there || free > 0) && c.budget == 1 {
					limit = 2
				}
				if n := newIn(before, after); n > limit {
					t.Fatalf("package %s: %d new layers\n%q\n%q", what, n, was, groups)
				}
				before = after
			}
		})
	}
}

func TestKeptGroups(t *testing.T) {
	cases := map[string]struct {
		previous string // groups separated by blanks, packages by commas
		sizes    string // NAME=SIZE
		budget   int
		want     string // empty if nothing is kept
	}{
		"as they were":                                 {"a,b c", "a=1 b=2 c=3", 2, "a,b c"},
		"without what is gone":                         {"a,b,x c y", "a=1 b=2 c=3", 2, "a,b c"},
		"a new one is alone while there are layers":    {"a,b c", "a=1 b=2 c=3 n=4", 3, "a,b c n"},
		"the biggest new one is alone":                 {"a,b c", "a=1 b=2 c=3 m=4 n=5", 3, "a,b,m c n"},
		"a new one joins the layer with fewest bytes":  {"a,b c,d e", "a=1 b=9 c=2 d=2 e=1 n=4", 3, "a,b c,d,n e"},
		"which is one that is shared":                  {"a,b e", "a=1 b=9 e=1 n=4", 2, "a,b,n e"},
		"unless none is shared":                        {"a b", "a=5 b=4 n=4", 2, "a b,n"},
		"of the same bytes the first by name":          {"c,d a,b", "a=1 b=1 c=1 d=1 n=1", 2, "a,b,n c,d"},
		"a free layer goes to the biggest that shares": {"a,b c,d gone", "a=1 b=2 c=7 d=3", 3, "a,b c d"},
		"more layers than there were":                  {"a,b,c", "a=1 b=2 c=7", 3, "a b c"},
		"fewer layers than there were":                 {"a b c", "a=1 b=2 c=7", 2, ""},
		"nothing in common":                            {"a b", "x=1 y=1", 2, ""},
		"no groups":                                    {"", "x=1 y=1", 2, ""},
		"twice in one layer, and in two":               {"a,a,b a,c", "a=1 b=2 c=3", 2, "a,b c"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var previous [][]string
			for _, g := range strings.Fields(c.previous) {
				previous = append(previous, strings.Split(g, ","))
			}
			var all []Package
			for _, f := range strings.Fields(c.sizes) {
				var w Package
				if _, err := fmt.Sscanf(strings.Replace(f, "=", " ", 1), "%s %d", &w.Name, &w.Size); err != nil {
					t.Fatal(err)
				}
				all = append(all, w)
			}
			slices.Reverse(all)
			groups, ok := Keep(previous, all, c.budget)
			var got []string
			for _, g := range groups {
				got = append(got, strings.Join(g, ","))
			}
			if text := strings.Join(got, " "); text != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", text, ok, c.want)
			}
		})
	}
	if _, ok := Keep(nil, []Package{{"a", 1}}, 1); ok {
		t.Error("kept without a previous image")
	}
}
