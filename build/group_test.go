package build

import "testing"

// A base with a few layers more or less does not reshuffle the packages.
func TestLayersBelowDoNotMatter(t *testing.T) {
	for _, most := range []int{100, 120} {
		for below := range reservedLayers + 1 {
			if got := contentBudget(most, below); got != most-reservedLayers {
				t.Errorf("%d layers, %d of them below: %d for packages", most, below, got)
			}
		}
	}
	for _, c := range [][3]int{{100, 30, 70}, {100, 100, 0}, {10, 1, 9}, {9, 1, 8}, {5, 0, 5}, {1, 0, 1}} {
		if got := contentBudget(c[0], c[1]); got != c[2] {
			t.Errorf("%d layers, %d of them below: %d for packages", c[0], c[1], got)
		}
	}
}
