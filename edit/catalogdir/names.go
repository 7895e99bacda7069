package catalogdir

import (
	"slices"
	"strings"
)

// compareNames orders slash-separated names like a directory walk.
func compareNames(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

func sortNames(names []string) { slices.SortFunc(names, compareNames) }
