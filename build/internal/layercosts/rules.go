package main

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/grouping"
)

// rules are the compared grouping rules: bindery's and other known ones.
var rules = []struct {
	name   string
	divide func(sizes map[string]int64, budget int) [][]string
}{
	{"one layer", func(sizes map[string]int64, _ int) [][]string { return [][]string{bySize(sizes)} }},
	{"biggest and overflow", overflow},
	{"hash", func(sizes map[string]int64, budget int) [][]string { return hashed(bySize(sizes), budget) }},
	{"half the biggest, others by hash", half},
	{"bindery", bindery},
	{"a layer each", func(sizes map[string]int64, _ int) [][]string { return alone(bySize(sizes)) }},
}

// bindery is the rule of this project.
func bindery(sizes map[string]int64, budget int) [][]string {
	var all []grouping.Package
	for name, size := range sizes {
		all = append(all, grouping.Package{Name: name, Size: size})
	}
	return grouping.Divide(all, budget)
}

// overflow puts each of the biggest packages into its own layer, and all others into the last one.
func overflow(sizes map[string]int64, budget int) [][]string {
	all := bySize(sizes)
	if len(all) <= budget {
		return alone(all)
	}
	return append(alone(all[:budget-1]), all[budget-1:])
}

// half uses half of the layers for the biggest packages, and distributes the others by a hash of their names.
func half(sizes map[string]int64, budget int) [][]string {
	all := bySize(sizes)
	if len(all) <= budget {
		return alone(all)
	}
	return append(alone(all[:budget/2]), hashed(all[budget/2:], budget-budget/2)...)
}

func hashed(names []string, n int) [][]string {
	groups := map[uint64][]string{}
	for _, name := range names {
		h := fnv.New64a()
		h.Write([]byte(name))
		i := h.Sum64() % uint64(n)
		groups[i] = append(groups[i], name)
	}
	return slices.Collect(maps.Values(groups))
}

func alone(names []string) (groups [][]string) {
	for _, name := range names {
		groups = append(groups, []string{name})
	}
	return groups
}

// bySize returns the names sorted by size, the biggest first.
func bySize(sizes map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
}
