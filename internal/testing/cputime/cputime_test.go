package cputime_test

import (
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// work is a global, so that the compiler does not remove the computation.
var work int

func loop(n int) func() {
	return func() {
		for i := range n {
			work += i ^ work
		}
	}
}

func TestRatio(t *testing.T) {
	if r := cputime.Ratio(loop(10_000), loop(80_000)); r < 4 || r > 16 {
		t.Errorf("eight times the work takes %.1f times as long", r)
	}
}
