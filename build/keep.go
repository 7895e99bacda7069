package build

import (
	"cmp"
	"slices"
	"strings"
)

// keep divides the packages among at most budget layers as the previous image has them: those that it has stay together.
// New packages get layers of their own as long as there are layers, the biggest first; beyond that each goes to the layer
// with the fewest bytes that several packages share already, or of all if none is shared. Layers that are still left are
// for the biggest of the packages that share one. So one package that is added has one layer of other content come
// about, one that is changed too, one that is removed two at most, and a change of size moves no other package.
//
// It is false if there is nothing to keep, or if the groups are more than the budget.
func (p *Previous) keep(all []weight, budget int) (_ [][]string, ok bool) {
	if p == nil {
		return nil, false
	}
	sizes := make(map[string]int64, len(all))
	for _, w := range all {
		sizes[w.pkg] = w.size
	}
	placed := map[string]bool{}
	var groups []keptGroup
	for _, names := range p.Groups {
		var g keptGroup
		for _, pkg := range names {
			// A wrong annotation may say it twice.
			if size, there := sizes[pkg]; there && !placed[pkg] {
				placed[pkg] = true
				g.add(weight{pkg, size})
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
	slices.SortFunc(groups, func(a, b keptGroup) int { return heavier(a.packages[0], b.packages[0]) })
	var added []weight
	for _, w := range all {
		if !placed[w.pkg] {
			added = append(added, w)
		}
	}
	slices.SortFunc(added, heavier)
	for _, w := range added {
		if len(groups) < budget {
			groups = append(groups, keptGroup{[]weight{w}, w.size})
			continue
		}
		lightest(groups).add(w)
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
		g.packages, g.size = g.packages[1:], g.size-alone.size
		groups = append(groups, keptGroup{[]weight{alone}, alone.size})
	}
	out := make([][]string, len(groups))
	for i, g := range groups {
		for _, w := range g.packages {
			out[i] = append(out[i], w.pkg)
		}
	}
	return sortedGroups(out), true
}

// keptGroup is a layer to be.
type keptGroup struct {
	packages []weight
	size     int64
}

func (g *keptGroup) add(w weight) {
	g.packages = append(g.packages, w)
	g.size += w.size
}

func (g *keptGroup) sort() { slices.SortFunc(g.packages, heavier) }

// lightest is the group of several packages with the fewest bytes; of all groups, if each has one package.
func lightest(groups []keptGroup) *keptGroup {
	var best *keptGroup
	for i := range groups {
		g := &groups[i]
		if best == nil || cmp.Or(compareShared(g, best), cmp.Compare(g.size, best.size), strings.Compare(g.packages[0].pkg, best.packages[0].pkg)) < 0 {
			best = g
		}
	}
	return best
}

// compareShared puts groups of several packages before those of one.
func compareShared(a, b *keptGroup) int {
	return cmp.Compare(min(len(b.packages), 2), min(len(a.packages), 2))
}

// biggestShared is the group that has the biggest of all packages that share a layer; nil if each is alone. The groups are
// sorted in themselves.
func biggestShared(groups []keptGroup) *keptGroup {
	var best *keptGroup
	for i := range groups {
		if g := &groups[i]; len(g.packages) > 1 && (best == nil || heavier(g.packages[0], best.packages[0]) < 0) {
			best = g
		}
	}
	return best
}
