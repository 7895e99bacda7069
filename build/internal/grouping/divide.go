package grouping

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Package is a package and the bytes of its catalog: the only input of the division. The empty name stands for the
// blobs of no package.
type Package struct {
	Name string
	Size int64
}

// perBucket is the approximate number of layers per bucket of packages. With a larger number more of the big packages
// get a layer of their own; with a smaller one the shared layers are smaller. docs/explain/layers.md has the
// measurements.
const perBucket = 3

// Divide determines which packages share a layer if there are budget layers, at least one, for packages of the given
// sizes in bytes. It is a pure function with the property that adding, removing or changing one package changes at most
// two layers:
//
// Every package belongs to one of budget/3 buckets, rounded up, by a hash of its name. Buckets get one layer each in
// turn, until no layers are left or no bucket can use more. In a bucket with fewer layers than packages, the biggest
// packages have separate layers, and the others share the last one. With enough layers every package has its own.
//
// docs/explain/layers.md proves it. Groups are sorted by their first packages; the empty name counts as the biggest
// package.
func Divide(all []Package, budget int) [][]string {
	groups := make([][]string, 0, min(len(all), budget))
	if len(all) <= budget {
		for _, w := range all {
			groups = append(groups, []string{w.Name})
		}
		return sortedGroups(groups)
	}
	buckets := make([][]Package, (budget+perBucket-1)/perBucket)
	for _, w := range all {
		i := bucket(w.Name, len(buckets))
		buckets[i] = append(buckets[i], w)
	}
	counts := make([]int, len(buckets))
	for i, b := range buckets {
		counts[i] = len(b)
	}
	for i, share := range fill(counts, budget) {
		if share == 0 {
			continue
		}
		b := buckets[i]
		slices.SortFunc(b, compareWeight)
		for _, w := range b[:share-1] {
			groups = append(groups, []string{w.Name})
		}
		var rest []string
		for _, w := range b[share-1:] {
			rest = append(rest, w.Name)
		}
		groups = append(groups, rest)
	}
	return sortedGroups(groups)
}

// fill distributes a number of layers among buckets that can use counts each: in rounds of one per bucket.
func fill(counts []int, budget int) []int {
	shares := make([]int, len(counts))
	for given := true; given; {
		given = false
		for i, c := range counts {
			if shares[i] < c && budget > 0 {
				shares[i]++
				budget--
				given = true
			}
		}
	}
	return shares
}

// compareWeight orders by size, the biggest first, and by name for equal sizes. Blobs without a package come first:
// annotations cannot record them among packages.
func compareWeight(a, b Package) int {
	if (a.Name == "") != (b.Name == "") {
		return cmp.Compare(len(a.Name), len(b.Name))
	}
	return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name))
}

// bucket returns the bucket of a package, one of n, by its name.
func bucket(pkg string, n int) int {
	sum := sha256.Sum256([]byte(pkg))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// sortedGroups sorts the names in each group, and the groups by their first names.
func sortedGroups(groups [][]string) [][]string {
	for _, g := range groups {
		slices.Sort(g)
	}
	slices.SortFunc(groups, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return groups
}
