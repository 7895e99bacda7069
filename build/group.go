package build

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// group divides the packages among at most budget layers.
//
// A package has a layer of its own as long as there are enough. Beyond that the biggest packages fill one half of the
// layers alone, and the others share the other half, each in the layer that the hash of its name picks. Which of the
// shared layers a package is in does not depend on the other packages, so that adding or changing one changes one layer.
func group(all []content, budget int) ([][]content, error) {
	if budget < 1 {
		return nil, fmt.Errorf("no layer is left for the %d packages: allow more layers", len(all))
	}
	if len(all) <= budget {
		groups := make([][]content, len(all))
		for i, c := range all {
			groups[i] = []content{c}
		}
		return groups, nil
	}
	bySize := slices.Clone(all)
	slices.SortFunc(bySize, func(a, b content) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), strings.Compare(a.pkg, b.pkg))
	})
	alone := budget / 2
	var groups [][]content
	for _, c := range bySize[:alone] {
		groups = append(groups, []content{c})
	}
	slices.SortFunc(groups, func(a, b []content) int { return strings.Compare(a[0].pkg, b[0].pkg) })
	shared := make([][]content, budget-alone)
	rest := bySize[alone:]
	slices.SortFunc(rest, func(a, b content) int { return strings.Compare(a.pkg, b.pkg) })
	for _, c := range rest {
		i := bucket(c.pkg, len(shared))
		shared[i] = append(shared[i], c)
	}
	for _, s := range shared {
		if len(s) > 0 {
			groups = append(groups, s)
		}
	}
	return groups, nil
}

// bucket picks one of n layers by a package's name.
func bucket(pkg string, n int) int {
	h := fnv.New64a()
	h.Write([]byte(pkg))
	return int(h.Sum64() % uint64(n))
}
