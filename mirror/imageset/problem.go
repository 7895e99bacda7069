package imageset

import (
	"errors"

	"github.com/operator-bindery/bindery/internal/problem"
)

// Problem is one thing that is wrong in a configuration file, or to be known about it.
type Problem = problem.Problem

// Error has the problems of one file in the order of its lines, the first hundred of them.
type Error = problem.List[Problem]

// OnlyTagless reports whether all problems are additional images without tag and digest, and OnlyCharts whether all are about
// charts. oc-mirror finds these while it collects images and ends with the status of additional images, 8, or of charts, 16, in
// place of that of configurations, 1.
func OnlyTagless(err error) bool { return onlyAbout(err, errTagless) }

// OnlyCharts is described at [OnlyTagless].
func OnlyCharts(err error) bool { return onlyAbout(err, errChart) }

func onlyAbout(err, what error) bool {
	var wrong *Error
	if !errors.As(err, &wrong) {
		return false
	}
	for _, p := range wrong.Problems {
		if !errors.Is(p, what) {
			return false
		}
	}
	return wrong.More == 0
}
