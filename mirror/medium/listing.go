package medium

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// listing is what a repository of an archive consists of: what is reached from its tags. Remains of images that were
// given up in the middle are in no listing.
type listing struct {
	path string
	tags map[string]v1.Descriptor
	// attached are the referrers, which have no tag.
	attached []attachment
	// manifests and blobs are all that belongs to the repository, also what is left out.
	manifests, blobs map[key]bool
}

type attachment struct {
	v1.Descriptor
	subject key
}

// listings returns what the repositories consist of, by path. The error is of the class [fault.ErrIntegrity] if an
// image is not complete.
func (w *Writer) listings(ctx context.Context) ([]*listing, error) {
	var all []*listing
	for _, path := range slices.Sorted(maps.Keys(w.repos)) {
		r := w.repos[path]
		if len(r.tags) == 0 {
			continue
		}
		l := &listing{path: path, tags: r.tags, manifests: map[key]bool{}, blobs: map[key]bool{}}
		for _, tag := range slices.Sorted(maps.Keys(r.tags)) {
			if err := w.list(ctx, l, r, r.tags[tag]); err != nil {
				return nil, fmt.Errorf("%s:%s: %w", path, tag, err)
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// list adds a manifest, its parts and its referrers to a listing.
func (w *Writer) list(ctx context.Context, l *listing, r *writerRepository, top v1.Descriptor) error {
	if err := w.walk(ctx, l, top.Digest); err != nil {
		return err
	}
	// What is attached to what is reached: each round reaches more.
	for before := -1; before != len(l.attached); {
		before = len(l.attached)
		for _, subject := range sorted(l.manifests) {
			for _, d := range r.subjects[subject] {
				listed := func(a attachment) bool { return a.Digest == d.Digest }
				if slices.ContainsFunc(l.attached, listed) {
					continue
				}
				if err := w.walk(ctx, l, d.Digest); err != nil {
					return err
				}
				l.attached = append(l.attached, attachment{d, subject})
			}
		}
	}
	return nil
}

// walk adds a manifest and its parts. Entries of an index that were not written are passed over: images may be
// mirrored for some platforms only.
func (w *Writer) walk(ctx context.Context, l *listing, top digest.Digest) error {
	read := func(_ context.Context, n *store.Node) error {
		k, err := keyOf(n.Digest)
		if err != nil || l.manifests[k] {
			return err
		}
		_, has := w.blobs[k]
		out, p := w.leftOut[k], &parts{}
		switch {
		case has:
			text, err := w.manifest(k)
			if err != nil {
				return err
			}
			if p, err = partsOf(text); err != nil {
				return err
			}
		case out != nil:
			p = cmp.Or(out.parts, p)
		case n.Above != nil:
			return nil
		default:
			return fmt.Errorf("%w: the archive has no manifest %s", fault.ErrIntegrity, n.Digest)
		}
		l.manifests[k], n.Parts = true, p.entries()
		for _, b := range p.blobs {
			if _, in := w.blobs[b]; !in && w.leftOut[b] == nil && has {
				return fmt.Errorf("%w: %s needs the blob %s, which was not written", fault.ErrIntegrity, n.Digest,
					b.digest())
			}
			l.blobs[b] = true
		}
		return nil
	}
	return store.Walk(ctx, store.Node{Descriptor: v1.Descriptor{Digest: top}}, store.WalkOptions{Read: read})
}

func sorted(keys map[key]bool) []key {
	return slices.SortedFunc(maps.Keys(keys), func(a, b key) int { return bytes.Compare(a[:], b[:]) })
}
