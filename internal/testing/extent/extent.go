// Package extent says how many of their cases exhaustive tests take.
package extent

import (
	"os"

	"github.com/operator-bindery/bindery/internal/testing/race"
)

// Stride returns n for a test that takes every nth of its cases. If BINDERY_TEST_ALL is set, as by "make test-all", that is
// 1: all of them. With the race detector, which takes eight times as long, it is four times n.
func Stride(n int) int {
	switch {
	case os.Getenv("BINDERY_TEST_ALL") != "":
		return 1
	case race.Enabled:
		return 4 * n
	}
	return n
}
