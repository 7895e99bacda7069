// Package nearest finds the name that a misspelled word was perhaps meant to be.
package nearest

// Name returns the name that is most like word, and whether there is one close enough to be worth a suggestion: at
// most one edit (a letter added, left out, replaced, or two neighbours swapped) for every three letters, and never all of
// them. Among equally near names the first wins.
func Name(word string, names []string) (string, bool) {
	best, bestDistance := "", max(len(word)/3, min(len(word)-1, 1))+1
	for _, name := range names {
		if d := distance(word, name, bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best, best != ""
}

// distance is the restricted Damerau-Levenshtein distance of a and b in bytes; limit or more when it is not below limit.
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
