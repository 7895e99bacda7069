package build

import (
	"errors"
	"fmt"
)

// reservedLayers is the number of layers out of a hundred that are reserved for the server, the base and the layers on
// top. So the division of the packages does not depend on the number of base layers.
const reservedLayers = 10

// contentBudget returns the number of package layers in an image with at most most layers, of which others are used for
// other purposes.
func contentBudget(most, others int) int {
	return most - max(others, min(reservedLayers, most/10))
}

// ErrTooFewLayers reports that the layers below and above the packages use up [Options.MaxLayers].
var ErrTooFewLayers = errors.New("no layer is left")

// group divides the packages among at most budget layers: as in the previous image if possible, else with [Divide]. The
// groups are sorted by their first packages.
func group(all []content, budget int, previous *Previous) ([][]content, error) {
	if budget < 1 {
		return nil, fmt.Errorf("%w for the %d packages: allow more layers", ErrTooFewLayers, len(all))
	}
	weights := make([]weight, len(all))
	byName := make(map[string]content, len(all))
	for i, c := range all {
		weights[i] = weight{c.pkg, c.size()}
		byName[c.pkg] = c
	}
	names, kept := previous.keep(weights, budget)
	if !kept {
		names = divide(weights, budget)
	}
	groups := make([][]content, len(names))
	for i, g := range names {
		for _, pkg := range g {
			groups[i] = append(groups[i], byName[pkg])
		}
	}
	return groups, nil
}
