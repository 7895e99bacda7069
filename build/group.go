package build

import (
	"errors"
	"fmt"
)

// reservedLayers is how many of a hundred layers are not for packages, however few lie below them: the server's layer, those
// of a base, and what comes on top. So a base with other layers, or none, leaves the division of the packages as it is.
const reservedLayers = 10

// contentBudget is how many layers packages may have in an image of at most most layers, of which others are not theirs.
func contentBudget(most, others int) int {
	return most - max(others, min(reservedLayers, most/10))
}

// ErrTooFewLayers is that the layers below the packages, and those on top, are as many as [Options.MaxLayers] allows.
var ErrTooFewLayers = errors.New("no layer is left")

// group divides the packages among at most budget layers: as in the previous image as far as that goes, else as [Divide]
// says. The groups are sorted by their first packages.
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
