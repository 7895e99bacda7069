package versions

import (
	"iter"
	"slices"
	"sort"

	"github.com/blang/semver/v4"
)

// Sorted finds which of many versions are in ranges: each span of a range costs two binary searches, in place of a
// comparison with every version.
type Sorted struct {
	versions []semver.Version // sorted
	numbers  []int            // of each of versions: where it is in what Sort was given
	ranks    []int            // the inverse of numbers
}

// Sort prepares a search in versions, which are not changed and may be equal.
func Sort(all []semver.Version) *Sorted {
	s := &Sorted{versions: make([]semver.Version, len(all)), numbers: make([]int, len(all)), ranks: make([]int, len(all))}
	for i := range all {
		s.numbers[i] = i
	}
	slices.SortStableFunc(s.numbers, func(a, b int) int { return all[a].Compare(all[b]) })
	for rank, number := range s.numbers {
		s.versions[rank], s.ranks[number] = all[number], rank
	}
	return s
}

// Find returns the number of a version that is equal but for build metadata.
func (s *Sorted) Find(v semver.Version) (number int, ok bool) {
	rank, ok := slices.BinarySearchFunc(s.versions, v, semver.Version.Compare)
	if !ok {
		return 0, false
	}
	return s.numbers[rank], true
}

// Equal returns the numbers of the versions that are equal to one but for build metadata, and its own, in no order.
func (s *Sorted) Equal(number int) []int {
	from, v := s.ranks[number], s.versions[s.ranks[number]]
	to := from
	for from > 0 && s.versions[from-1].Compare(v) == 0 {
		from--
	}
	for to < len(s.versions) && s.versions[to].Compare(v) == 0 {
		to++
	}
	return slices.Clone(s.numbers[from:to])
}

// Matches are those of the versions of a [Sorted] that are in a range.
type Matches struct {
	in *Sorted
	// spans are ranks, each from the first to the one behind the last. They are disjoint and sorted.
	spans [][2]int
}

// In returns the versions that are in a range.
func (s *Sorted) In(r Range) Matches {
	m := Matches{in: s}
	for _, part := range r.spans {
		from, to := s.rank(part.from), s.rank(part.to)
		switch n := len(m.spans); {
		case from == to:
		case n > 0 && m.spans[n-1][1] == from:
			m.spans[n-1][1] = to
		default:
			m.spans = append(m.spans, [2]int{from, to})
		}
	}
	return m
}

// rank returns how many of the versions are below a cut.
func (s *Sorted) rank(c cut) int {
	return sort.Search(len(s.versions), func(i int) bool { return !c.below(s.versions[i]) })
}

// None reports whether no version is in the range.
func (m Matches) None() bool { return len(m.spans) == 0 }

// Has reports whether a version is in the range, by its number in what [Sort] was given.
func (m Matches) Has(number int) bool {
	if len(m.spans) == 0 {
		return false
	}
	rank := m.in.ranks[number]
	_, ok := slices.BinarySearchFunc(m.spans, rank, func(span [2]int, rank int) int {
		switch {
		case span[1] <= rank:
			return -1
		case span[0] > rank:
			return 1
		}
		return 0
	})
	return ok
}

// All returns the numbers of the versions in the range, in the order in which [Sort] was given them.
func (m Matches) All() iter.Seq[int] {
	var numbers []int
	for _, span := range m.spans {
		numbers = append(numbers, m.in.numbers[span[0]:span[1]]...)
	}
	slices.Sort(numbers)
	return slices.Values(numbers)
}
