package grouping

import (
	"cmp"
	"slices"
	"strings"
)

// Keep divides the packages among at most budget layers, based on the previous image: packages that share a layer there
// stay together. New packages get layers of their own while there are any, the biggest first; the rest go to the shared
// layer with the fewest bytes, or to the lightest layer if none is shared. Remaining layers are used for the biggest
// packages that share one. So an added or changed package changes the content of one layer, a removed one that of at
// most two, and a change of size moves no other package.
//
// ok is false if no package is in a previous group, or if there are more groups than the budget allows.
func Keep(previous [][]string, all []Package, budget int) (_ [][]string, ok bool) {
	sizes := make(map[string]int64, len(all))
	for _, w := range all {
		sizes[w.Name] = w.Size
	}
	placed := map[string]bool{}
	var groups []keptGroup
	for _, names := range previous {
		var g keptGroup
		for _, pkg := range names {
			// An invalid annotation may name a package twice.
			if size, there := sizes[pkg]; there && !placed[pkg] {
				placed[pkg] = true
				g.add(Package{pkg, size})
			}
		}
		if len(g.packages) > 0 {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 || len(groups) > budget {
		return nil, false
	}
	for i := range groups {
		groups[i].sort()
	}
	slices.SortFunc(groups, func(a, b keptGroup) int { return compareWeight(a.packages[0], b.packages[0]) })
	var added []Package
	for _, w := range all {
		if !placed[w.Name] {
			added = append(added, w)
		}
	}
	slices.SortFunc(added, compareWeight)
	for _, w := range added {
		if len(groups) < budget {
			groups = append(groups, keptGroup{[]Package{w}, w.Size})
			continue
		}
		findLightest(groups).add(w)
	}
	for i := range groups {
		groups[i].sort()
	}
	for len(groups) < budget {
		g := biggestShared(groups)
		if g == nil {
			break
		}
		alone := g.packages[0]
		g.packages, g.size = g.packages[1:], g.size-alone.Size
		groups = append(groups, keptGroup{[]Package{alone}, alone.Size})
	}
	out := make([][]string, len(groups))
	for i, g := range groups {
		for _, w := range g.packages {
			out[i] = append(out[i], w.Name)
		}
	}
	return sortedGroups(out), true
}

// keptGroup is a future layer.
type keptGroup struct {
	packages []Package
	size     int64
}

func (g *keptGroup) add(w Package) {
	g.packages = append(g.packages, w)
	g.size += w.Size
}

func (g *keptGroup) sort() { slices.SortFunc(g.packages, compareWeight) }

// findLightest returns the group of several packages with the fewest bytes; of all groups, if each has one package.
func findLightest(groups []keptGroup) *keptGroup {
	var best *keptGroup
	for i := range groups {
		g := &groups[i]
		if best == nil || cmp.Or(compareShared(g, best), cmp.Compare(g.size, best.size),
			strings.Compare(g.packages[0].Name, best.packages[0].Name)) < 0 {
			best = g
		}
	}
	return best
}

// compareShared orders groups of several packages before those of one.
func compareShared(a, b *keptGroup) int {
	return cmp.Compare(min(len(b.packages), 2), min(len(a.packages), 2))
}

// biggestShared returns the group with the biggest of all packages that share a layer; nil if none is shared. Each
// group is sorted.
func biggestShared(groups []keptGroup) *keptGroup {
	var best *keptGroup
	for i := range groups {
		if g := &groups[i]; len(g.packages) > 1 && (best == nil || compareWeight(g.packages[0], best.packages[0]) < 0) {
			best = g
		}
	}
	return best
}
