package medium

import (
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Parts returns the descriptions of those archives that are parts, in the order in which they were read.
func (r *Reader) Parts() []*Contents { return r.parts }

// joinParts adds what the parts have, lack and leave out to the description of the archive that has the catalogs. If
// there is none, the last part stands for it.
func (r *Reader) joinParts() {
	if len(r.parts) == 0 {
		return
	}
	whole := Contents{}
	if r.contents != nil {
		whole = *r.contents
	} else {
		whole = *r.parts[len(r.parts)-1]
		whole.Images, whole.Lacking, whole.LeftOut = nil, nil, nil
	}
	whole.Images, whole.Lacking = slices.Clone(whole.Images), slices.Clone(whole.Lacking)
	leftOut := map[digest.Digest]LeftOut{}
	for _, l := range whole.LeftOut {
		leftOut[l.Digest] = l
	}
	for _, p := range r.parts {
		whole.Images = append(whole.Images, p.Images...)
		whole.Lacking = append(whole.Lacking, p.Lacking...)
		for _, l := range p.LeftOut {
			if _, known := leftOut[l.Digest]; !known {
				leftOut[l.Digest] = l
			}
		}
	}
	whole.LeftOut = slices.SortedFunc(maps.Values(leftOut),
		func(a, b LeftOut) int { return compare(a.Digest, b.Digest) })
	r.contents = &whole
}
