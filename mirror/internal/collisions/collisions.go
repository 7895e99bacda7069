// Package collisions finds images of a mirror that would replace each other.
package collisions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Pair is an image and where it goes.
type Pair struct {
	Source, Destination *imageset.Ref
	// Content is the digest of the source's manifest, empty if it is not known yet. The digest in Source counts if it
	// is empty.
	Content digest.Digest
	// Made tells that what gets to the destination is made of the source, so that it is the content of no other image.
	// Content then identifies what is made.
	Made bool
}

func (p *Pair) content() digest.Digest { return cmp.Or(p.Content, p.Source.Digest) }

// Collision is two different images with one destination. It is an error.
type Collision struct {
	First, Second imageset.Ref
	Destination   imageset.Ref
}

func (c *Collision) Error() string {
	return fmt.Sprintf("%s and %s would both be %s: give one of them another name with targetRepo, targetCatalog or "+
		"targetTag", c.First.Name(), c.Second.Name(), c.Destination.Name())
}

// Unwrap returns [fault.ErrInvalid].
func (c *Collision) Unwrap() error { return fault.ErrInvalid }

// Find returns the destinations at which one image would replace a different one. That happens because the host
// of a source is dropped, and paths may be joined, so that different names fall together. Images whose digests are
// equal are no collision, nor are names of one repository as long as a digest is not known. The collisions are sorted
// by destination, one for each further source.
func Find(pairs []Pair) []Collision {
	first := map[string]int{}
	var out []Collision
	told := map[[2]string]bool{}
	for i := range pairs {
		p := &pairs[i]
		at := p.Destination.String()
		j, taken := first[at]
		if !taken {
			first[at] = i
			continue
		}
		if q := &pairs[j]; differ(q, p) && !told[[2]string{at, p.Source.String()}] {
			told[[2]string{at, p.Source.String()}] = true
			out = append(out, Collision{*q.Source, *p.Source, *p.Destination})
		}
	}
	slices.SortStableFunc(out, func(a, b Collision) int {
		return cmp.Or(cmp.Compare(a.Destination.String(), b.Destination.String()),
			cmp.Compare(a.Second.String(), b.Second.String()))
	})
	return out
}

// differ reports whether two pairs with one destination have different content.
func differ(a, b *Pair) bool {
	if a.Made || b.Made {
		return a.Made != b.Made || a.Content != b.Content
	}
	if x, y := a.content(), b.content(); x != "" && y != "" {
		return x != y
	}
	return a.Source.Transport != b.Source.Transport || a.Source.Repository() != b.Source.Repository() ||
		a.Source.Tag != b.Source.Tag && a.Source.Tag != "" && b.Source.Tag != ""
}
