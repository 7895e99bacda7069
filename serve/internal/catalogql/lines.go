package catalogql

import (
	"slices"

	"github.com/graphql-go/graphql/language/location"
)

// lines finds the line and column of positions in a query. It has the ends of lines: for each where it begins and where
// the next line begins.
type lines [][2]int

func linesOf(query string) lines {
	var all lines
	for i := 0; i < len(query); i++ {
		switch {
		case query[i] == '\r' && i+1 < len(query) && query[i+1] == '\n':
			all = append(all, [2]int{i, i + 2})
			i++
		case query[i] == '\n' || query[i] == '\r':
			all = append(all, [2]int{i, i + 1})
		}
	}
	return all
}

// at returns the place of a position as the library counts it.
func (l lines) at(position int) location.SourceLocation {
	before, _ := slices.BinarySearchFunc(l, position, func(end [2]int, p int) int { return end[0] - p })
	if before == 0 {
		return location.SourceLocation{Line: 1, Column: position + 1}
	}
	return location.SourceLocation{Line: before + 1, Column: position + 1 - l[before-1][1]}
}

// fix puts in the places of positions that the library took for columns of one line.
func (l lines) fix(all []location.SourceLocation) {
	for i := range all {
		all[i] = l.at(all[i].Column - 1)
	}
}
