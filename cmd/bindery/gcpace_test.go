package main

import "testing"

// A heap grows to the floor, and beyond it by the percentage.
func TestPercentAfterACollection(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 3 << 20: 325, 4 << 20: 240, 7 << 20: 112, 11 << 20: 50, 16 << 20: 50, 1 << 40: 50} {
		if got := percentAfter(live, 1<<20); got != want {
			t.Errorf("%d bytes: %d%%, want %d%%", live, got, want)
		}
	}
}
