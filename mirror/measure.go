package mirror

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// measured is what an image consists of.
type measured struct {
	top v1.Descriptor
	// instances are the entries of an index that are copied; nil for a single image.
	instances []v1.Descriptor
	// blobs are the manifests, configurations and layers, each once, by digest with the size.
	blobs map[digest.Digest]int64
	all   int64 // the size of all blobs, also of those that a medium leaves out
}

// measureItem reads the manifests of an image, unless it is what the target has: then the result is nil. The blobs are
// without those that a medium leaves out, of which only the sum tells.
func (r *run) measureItem(ctx context.Context, i *item, there v1.Descriptor) (_ *measured, err error) {
	from, err := r.from.open(ctx, i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if there.Digest == from.top.Digest {
		return nil, nil
	}
	m, err := measure(ctx, from.Reader, from.top, i.platforms)
	if err != nil {
		return nil, err
	}
	for _, size := range m.blobs {
		m.all += size
	}
	r.dropLeftOut(m.blobs)
	return m, nil
}

// measure reads the manifests of an image, of an index only those of the platforms.
func measure(ctx context.Context, from store.Reader, top v1.Descriptor,
	platforms []v1.Platform) (*measured, error) {
	m := &measured{top: top, blobs: map[digest.Digest]int64{}}
	read := func(ctx context.Context, n *store.Node) error {
		text, _, err := from.Manifest(ctx, n.Digest.String())
		if err != nil {
			return err
		}
		m.blobs[n.Digest] = int64(len(text))
		n.Parts, err = store.PartsOf(text)
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		if n.Above != nil {
			m.instances = append(m.instances, n.Descriptor)
		}
		for _, b := range n.Parts.Blobs {
			m.blobs[b.Digest] = b.Size
		}
		if len(platforms) > 0 {
			n.Entries = slices.DeleteFunc(slices.Clone(n.Entries), func(d v1.Descriptor) bool {
				return d.Platform != nil && len(platformsOf([]v1.Platform{*d.Platform}, platforms)) == 0
			})
		}
		return nil
	}
	return m, store.Walk(ctx, store.Node{Descriptor: top}, store.WalkOptions{Read: read, Visit: visit})
}

// diskFull tells whether this machine has no more space.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
