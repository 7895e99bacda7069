package medium

import (
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Parts returns the descriptions of those archives that are parts, in the order in which they were read.
func (r *Reader) Parts() []*Contents { return r.parts }

// join makes one description of those of all archives.
func (r *Reader) join() {
	if r.contents == nil && len(r.parts) == 0 {
		return
	}
	whole := Contents{}
	if r.contents != nil {
		whole = *r.contents
	} else {
		whole = *r.parts[len(r.parts)-1]
		whole.Images, whole.Lacking, whole.LeftOut = nil, nil, nil
	}
	whole.Catalogs, whole.Images = slices.Clone(whole.Catalogs), slices.Clone(whole.Images)
	whole.Lacking, whole.LeftOut = slices.Clone(whole.Lacking), slices.Clone(whole.LeftOut)
	whole.Parts = whole.Parts && len(r.parts) == 0
	r.joinEarlier(&whole)
	for _, p := range r.parts {
		whole.Images = append(whole.Images, p.Images...)
		whole.Lacking = append(whole.Lacking, p.Lacking...)
		whole.LeftOut = append(whole.LeftOut, p.LeftOut...)
	}
	leftOut := map[digest.Digest]LeftOut{}
	for _, l := range whole.LeftOut {
		if _, known := leftOut[l.Digest]; !known && !r.Has(l.Digest) {
			leftOut[l.Digest] = l
		}
	}
	whole.LeftOut = slices.SortedFunc(maps.Values(leftOut),
		func(a, b LeftOut) int { return compare(a.Digest, b.Digest) })
	r.contents = &whole
}

// joinEarlier adds what earlier archives have and the last one does not describe, the latest first: catalogs and images
// whose tags still stand for them.
func (r *Reader) joinEarlier(whole *Contents) {
	described := map[string]bool{}
	for _, c := range whole.Catalogs {
		described[c.Path+":"+c.Tag] = true
	}
	for _, i := range whole.Images {
		described[i.Path+":"+i.Tag] = true
	}
	add := func(path, tag string, d digest.Digest) bool {
		name := path + ":" + tag
		one := r.repos[path]
		if described[name] || one == nil || one.tags[tag].digest() != d {
			return false
		}
		described[name] = true
		return true
	}
	for _, e := range slices.Backward(r.earlier) {
		for _, c := range e.Catalogs {
			if add(c.Path, c.Tag, c.Digest) {
				whole.Catalogs = append(whole.Catalogs, c)
			}
		}
		for _, i := range e.Images {
			if add(i.Path, i.Tag, i.Digest) {
				whole.Images = append(whole.Images, i)
			}
		}
		whole.LeftOut = append(whole.LeftOut, e.LeftOut...)
	}
}
