package grouping

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shelf is a catalog reduced to the inputs of its division into layers.
type shelf struct {
	r        *rand.Rand
	sizes    map[string]int64
	versions map[string]int
	next     int
}

func newShelf(seed uint64, n int) *shelf {
	s := &shelf{rand.New(rand.NewPCG(seed, 7)), map[string]int64{}, map[string]int{}, 0}
	for range n {
		s.add()
	}
	return s
}

// size returns a size distributed like those of real packages: most small, few very big, and some equal.
func (s *shelf) size() int64 {
	if s.r.IntN(5) == 0 {
		return int64(s.r.IntN(4))
	}
	return int64(float64(1000) / (s.r.Float64() + 1e-4))
}

func (s *shelf) add() string {
	name := fmt.Sprintf("operator-%d", s.next)
	if s.next == 3 {
		name = "" // blobs of no package
	}
	s.next++
	s.sizes[name], s.versions[name] = s.size(), 0
	return name
}

func (s *shelf) any() string {
	names := slices.Sorted(maps.Keys(s.sizes))
	return names[s.r.IntN(len(names))]
}

func (s *shelf) remove() {
	name := s.any()
	delete(s.sizes, name)
	delete(s.versions, name)
}

// edits are the possible changes of one package.
func (s *shelf) edits() map[string]func() {
	return map[string]func(){
		"added":           func() { s.add() },
		"removed":         s.remove,
		"changed":         func() { s.versions[s.any()]++ },
		"of another size": func() { n := s.any(); s.versions[n]++; s.sizes[n] = s.size() },
	}
}

// packagesOf are packages of these sizes, in any order.
func packagesOf(sizes map[string]int64) []Package {
	var all []Package
	for name, size := range sizes {
		all = append(all, Package{name, size})
	}
	return all
}

// weights are the packages in any order.
func (s *shelf) weights() []Package {
	all := packagesOf(s.sizes)
	s.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// layers returns the contents of the groups. It fails unless each package is in exactly one group and all usable layers
// are used.
func (s *shelf) layers(t *testing.T, groups [][]string, budget int) map[string]bool {
	t.Helper()
	if want := min(budget, len(s.sizes)); len(groups) != want {
		t.Fatalf("%d groups of %d packages, want %d", len(groups), len(s.sizes), want)
	}
	out := map[string]bool{}
	seen := 0
	for i, g := range groups {
		if i > 0 && groups[i-1][0] >= g[0] || !slices.IsSorted(g) {
			t.Fatalf("not in order: %q", groups)
		}
		var content []string
		for _, name := range g {
			version, there := s.versions[name]
			if !there {
				t.Fatalf("no package %q", name)
			}
			seen++
			content = append(content, fmt.Sprintf("%s@%d", name, version))
		}
		out[strings.Join(content, ",")] = true
	}
	if seen != len(s.sizes) || len(out) != len(groups) {
		t.Fatalf("%d packages in groups, want %d", seen, len(s.sizes))
	}
	return out
}

func newIn(before, after map[string]bool) int {
	n := 0
	for l := range after {
		if !before[l] {
			n++
		}
	}
	return n
}

// shelves are combinations of numbers of packages and layers: fewer packages than layers, as many, a few more, and many
// more.
var shelves = []struct{ packages, budget, edits int }{
	{0, 1, 30}, {5, 1, 60}, {2, 2, 200}, {7, 3, 300}, {9, 4, 300}, {12, 5, 300}, {4, 9, 300}, {9, 9, 500},
	{11, 10, 500}, {40, 20, 500},
	{90, 90, 300}, {100, 90, 200}, {300, 90, 100}, {2000, 90, 30}, {2000, 20, 30}, {200, 118, 100}, {110, 50, 200},
}

// The promise to clients that pull images: adding, removing or changing one package gives at most two new layers, and
// one if its size does not change.
func TestOneEditBringsTwoLayersAtMost(t *testing.T) {
	for i, c := range shelves {
		t.Run(fmt.Sprintf("%d packages in %d layers", c.packages, c.budget), func(t *testing.T) {
			s := newShelf(uint64(i), c.packages)
			before := s.layers(t, Divide(s.weights(), c.budget), c.budget)
			edits := s.edits()
			names := slices.Sorted(maps.Keys(edits))
			for range c.edits {
				what := names[s.r.IntN(len(names))]
				if len(s.sizes) == 0 {
					what = "added"
				}
				edits[what]()
				after := s.layers(t, Divide(s.weights(), c.budget), c.budget)
				most := 2
				if what == "changed" {
					most = 1
				}
				if n := newIn(before, after); n > most {
					t.Fatalf("package %s: %d new layers", what, n)
				}
				before = after
			}
		})
	}
}

func TestDivisionDoesNotDependOnTheOrder(t *testing.T) {
	s := newShelf(1, 500)
	for _, budget := range []int{1, 2, 33, 90, 499} {
		want := fmt.Sprint(Divide(s.weights(), budget))
		for range 5 {
			if got := fmt.Sprint(Divide(s.weights(), budget)); got != want {
				t.Fatalf("budget %d:\n%s\nand\n%s", budget, got, want)
			}
		}
	}
}

// If this changes, the layers differ from those of other releases: that needs a decision and a note to users.
func TestDivisionIsGolden(t *testing.T) {
	sizes := map[string]int64{"": 1, "etcd": 10, "prometheus": 300, "kiali": 300, "strimzi": 40, "argocd": 4,
		"jaeger": 2, "istio": 99}
	for budget, want := range map[int]string{
		1: `[["" "argocd" "etcd" "istio" "jaeger" "kiali" "prometheus" "strimzi"]]`,
		2: `[[""] ["argocd" "etcd" "istio" "jaeger" "kiali" "prometheus" "strimzi"]]`,
		5: `[[""] ["argocd" "etcd" "jaeger"] ["istio" "strimzi"] ["kiali"] ["prometheus"]]`,
		8: `[[""] ["argocd"] ["etcd"] ["istio"] ["jaeger"] ["kiali"] ["prometheus"] ["strimzi"]]`,
	} {
		if got := fmt.Sprintf("%q", Divide(packagesOf(sizes), budget)); got != want {
			t.Errorf("%d layers: %s", budget, got)
		}
	}
}
