package medium

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
)

// indexed is where a blob is.
type indexed struct {
	k        key
	segment  uint32 // in Reader.segments
	at, size int64
}

func compareIndexed(a, b indexed) int { return bytes.Compare(a.k[:], b.k[:]) }

// chunkLength is how many blobs are sorted together. An index that grows by chunks is never copied: a million blobs
// take 56 MB, and not that of two slices of which one replaces the other.
const chunkLength = 1 << 16

// blobIndex finds blobs by their digests. It is safe for concurrent use once it is sealed.
type blobIndex struct {
	chunks [][]indexed // sorted, but the last one
	length int
}

// add records a blob.
func (x *blobIndex) add(b indexed) error {
	if x.length >= maxIndexed {
		return fmt.Errorf("%w: more than %d blobs", fault.ErrLimit, maxIndexed)
	}
	x.length++
	last := len(x.chunks) - 1
	if last < 0 || len(x.chunks[last]) == chunkLength {
		if last >= 0 {
			slices.SortStableFunc(x.chunks[last], compareIndexed)
		}
		x.chunks = append(x.chunks, nil)
		last++
	}
	x.chunks[last] = append(x.chunks[last], b)
	return nil
}

// seal makes what was added to be found. A blob that is there twice must have one size; its
// content is compared with the digest when it is read.
func (x *blobIndex) seal() error {
	if last := len(x.chunks) - 1; last >= 0 {
		slices.SortStableFunc(x.chunks[last], compareIndexed)
	}
	for i, chunk := range x.chunks {
		for j, b := range chunk {
			if j > 0 && chunk[j-1].k == b.k && chunk[j-1].size != b.size {
				return twice(chunk[j-1], b)
			}
			if i == 0 {
				continue
			}
			if first, ok := x.find(b.k); ok && first.size != b.size {
				return twice(first, b)
			}
		}
	}
	return nil
}

func twice(a, b indexed) error {
	return fmt.Errorf("%w: the blob %s appears twice, with %d and %d bytes", fault.ErrInvalid, a.k.digest(), a.size,
		b.size)
}

// find returns the first of the blobs with a digest.
func (x *blobIndex) find(k key) (indexed, bool) {
	for _, chunk := range x.chunks {
		i, ok := slices.BinarySearchFunc(chunk, k, func(b indexed, k key) int { return bytes.Compare(b.k[:], k[:]) })
		if ok {
			return chunk[i], true
		}
	}
	return indexed{}, false
}

// inOrder yields the blobs in the order in which they are in the segments, so that disks read forward. Each chunk of
// them is sorted by itself.
func (x *blobIndex) inOrder() iter.Seq[indexed] {
	return func(yield func(indexed) bool) {
		for _, chunk := range x.chunks {
			chunk = slices.Clone(chunk)
			slices.SortFunc(chunk, func(a, b indexed) int {
				return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.at, b.at))
			})
			for _, b := range chunk {
				if !yield(b) {
					return
				}
			}
		}
	}
}
