// Package nearest suggests names for misspelled words.
package nearest

import "strings"

// Name returns the name that is most similar to word, and whether one is similar enough to suggest: at most one edit (a
// letter added, removed or replaced, or two neighbours swapped) per three letters, and fewer edits than letters. The
// first of equally similar names wins; one that differs only in the case of its letters is nearest.
func Name(word string, names []string) (string, bool) {
	best, bestDistance := "", max(len(word)/3, min(len(word)-1, 1))+1
	for _, name := range names {
		if name != word && strings.EqualFold(name, word) {
			return name, true
		}
		if d := distance(word, name, bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best, best != ""
}

// distance returns the restricted Damerau-Levenshtein distance of a and b in bytes, or any number of at least limit if
// it is not below limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 64 {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
