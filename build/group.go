package build

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/grouping"
)

// reservedLayers is the number of layers out of a hundred that are reserved for the server, the base and the layers on
// top. So the division of the packages does not depend on the number of base layers.
const reservedLayers = 10

// contentBudget returns the number of package layers in an image with at most most layers, of which others are used for
// other purposes.
func contentBudget(most, others int) int {
	return most - max(others, min(reservedLayers, most/10))
}

// group divides the packages among at most budget layers: as in the previous image as far as that goes, else by the
// rule of package grouping. The groups are sorted by their first packages.
func group(all []content, budget int, previous *Previous) ([][]content, error) {
	if budget < 1 {
		return nil, fmt.Errorf("%w for the %d packages: allow more layers", ErrTooFewLayers, len(all))
	}
	packages := make([]grouping.Package, len(all))
	byName := make(map[string]content, len(all))
	for i, c := range all {
		packages[i] = grouping.Package{Name: c.pkg, Size: c.size()}
		byName[c.pkg] = c
	}
	names, kept := [][]string(nil), false
	if previous != nil {
		names, kept = grouping.Keep(previous.Groups, packages, budget)
	}
	if !kept {
		names = grouping.Divide(packages, budget)
	}
	groups := make([][]content, len(names))
	for i, g := range names {
		for _, pkg := range g {
			groups[i] = append(groups[i], byName[pkg])
		}
	}
	return groups, nil
}
