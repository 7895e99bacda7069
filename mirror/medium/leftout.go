package medium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images/store"
)

// LeftOut returns what the archive counts on at the destination, by digest: the list that a [Writer] made, without what
// earlier archives have. An archive of oc-mirror has no list: what its tags and their manifests name and is not there
// is left out, and the history in it tells since when. Entries of an index that no file of the archive speaks of may be
// missing on purpose, for images are mirrored for some platforms only; they are not listed. Manifests that are left out
// hide what they refer to.
func (r *Reader) LeftOut(ctx context.Context) ([]LeftOut, error) {
	if r.contents != nil {
		return r.contents.LeftOut, nil
	}
	w := &absentWalk{r: r, seen: map[key]bool{}, absent: map[key]LeftOut{}}
	if err := w.histories(); err != nil {
		return nil, err
	}
	for _, path := range r.Repositories() {
		one := r.repos[path]
		for _, k := range one.tags {
			if err := w.walk(ctx, k.digest()); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	list := make([]LeftOut, 0, len(w.absent))
	for _, l := range w.absent {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b LeftOut) int { return compare(a.Digest, b.Digest) })
	return list, nil
}

// absentWalk looks for what an archive of oc-mirror names and does not hold.
type absentWalk struct {
	r      *Reader
	seen   map[key]bool
	absent map[key]LeftOut
	// since is when an archive first had a digest.
	since []firstHad
}

type firstHad struct {
	key
	time int64 // Unix
}

// histories reads the histories in the archive, the oldest first.
func (w *absentWalk) histories() error {
	files := w.r.Files()
	if _, err := fs.Stat(files, workingDir[:len(workingDir)-1]); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := fs.Sub(files, workingDir[:len(workingDir)-1])
	if err != nil {
		return err
	}
	all, err := historyFiles(dir)
	if err != nil {
		return err
	}
	for _, f := range all {
		h, err := readHistory(dir, f)
		if err != nil {
			return err
		}
		for _, k := range h.keys {
			w.since = append(w.since, firstHad{k, f.time.Unix()})
		}
		// The oldest of each stays, so that memory is that of one history.
		slices.SortStableFunc(w.since, func(a, b firstHad) int { return bytes.Compare(a.key[:], b.key[:]) })
		w.since = slices.CompactFunc(w.since, func(a, b firstHad) bool { return a.key == b.key })
	}
	return nil
}

func (w *absentWalk) had(k key) *time.Time {
	i, has := slices.BinarySearchFunc(w.since, k, func(f firstHad, k key) int { return bytes.Compare(f.key[:], k[:]) })
	if !has {
		return nil
	}
	t := time.Unix(w.since[i].time, 0).UTC()
	return &t
}

// walk looks at a manifest and what it refers to.
func (w *absentWalk) walk(ctx context.Context, top digest.Digest) error {
	read := func(ctx context.Context, n *store.Node) error {
		k, err := keyOf(n.Digest)
		if err != nil || w.seen[k] {
			return err
		}
		w.seen[k] = true
		if _, has := w.r.find(k); !has {
			if since := w.had(k); n.Above == nil || since != nil {
				w.absent[k] = LeftOut{Digest: n.Digest, Since: since}
			}
			return nil
		}
		text, mediaType, err := (&readerRepository{r: w.r, index: &repositoryIndex{}}).manifest(ctx, k)
		if err != nil {
			return err
		}
		p, err := partsOf(text)
		if err != nil {
			return fmt.Errorf("%s (%s): %w", n.Digest, mediaType, err)
		}
		for _, b := range p.blobs {
			if _, has := w.r.find(b); !has {
				w.absent[b] = LeftOut{Digest: b.digest(), Since: w.had(b)}
			}
		}
		n.Parts = p.entries()
		return nil
	}
	return store.Walk(ctx, store.Node{Descriptor: v1.Descriptor{Digest: top}}, store.WalkOptions{Read: read})
}
