package serve

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"
)

// index is what is kept in memory of a package: everything that a question can ask for by, and where the answers are.
type index struct {
	name           string
	hasPackage     bool // false when the file holds only custom blobs of a package that has no olm.package blob
	defaultChannel string
	pkg            record // api.Package
	sources        []SourceFile
	bundles        []indexBundle  // sorted by name
	channels       []indexChannel // sorted by name
	gvks           []indexGVK     // sorted
	customs        []indexCustom  // in the catalog's order
}

// SourceFile is one file of a file-based catalog from which blobs of a package were read. Name is slash-separated and
// relative to the catalog's root.
type SourceFile struct {
	Name   string
	Size   int64
	Digest [sha256.Size]byte
	// Packages is the number of packages of which the file holds blobs, blobs of no package counting as one more. It
	// shows that the cache file of another package is missing.
	Packages int
}

type indexBundle struct {
	name     string
	hasImage bool
	light    record // the api.Bundle but for what depends on the channel and what is in heavy
	heavy    record // csvJson and object
}

type indexChannel struct {
	name    string
	head    int          // position in entries
	entries []indexEntry // sorted by name
}

type indexEntry struct {
	bundle    int // position in index.bundles
	skipRange string
	replaces  string
	skips     []string
}

// indexGVK is an API with the bundles that provide it, as ascending positions in index.bundles.
type indexGVK struct {
	gvk
	bundles []int
}

type indexCustom struct {
	schema string
	record record
}

// records returns the places of all records in the order of the file.
func (x *index) records() iter.Seq[record] {
	return func(yield func(record) bool) {
		if !yield(x.pkg) {
			return
		}
		for i := range x.bundles {
			if !yield(x.bundles[i].light) {
				return
			}
		}
		for i := range x.bundles {
			if !yield(x.bundles[i].heavy) {
				return
			}
		}
		for i := range x.customs {
			if !yield(x.customs[i].record) {
				return
			}
		}
	}
}

// channel returns the channel of a name, or nil.
func (x *index) channel(name string) *indexChannel {
	i, ok := slices.BinarySearchFunc(x.channels, name, func(c indexChannel, name string) int {
		return cmp.Compare(c.name, name)
	})
	if !ok {
		return nil
	}
	return &x.channels[i]
}

// entryName is the name of an entry, which is that of its bundle.
func (x *index) entryName(e *indexEntry) string { return x.bundles[e.bundle].name }

// entry returns the entry of a name in a channel, or nil.
func (x *index) entry(c *indexChannel, name string) *indexEntry {
	i, ok := slices.BinarySearchFunc(c.entries, name, func(e indexEntry, name string) int {
		return cmp.Compare(x.bundles[e.bundle].name, name)
	})
	if !ok {
		return nil
	}
	return &c.entries[i]
}

// providers returns the positions of the bundles that provide an API, ascending.
func (x *index) providers(k gvk) []int {
	i, ok := slices.BinarySearchFunc(x.gvks, k, func(a indexGVK, k gvk) int { return a.gvk.compare(k) })
	if !ok {
		return nil
	}
	return x.gvks[i].bundles
}
