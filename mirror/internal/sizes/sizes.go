// Package sizes measures images by their manifests, without reading layers.
package sizes

import (
	"context"
	"maps"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// Image is what an image consists of.
type Image struct {
	Top v1.Descriptor
	// Instances are the entries of an index that are copied; nil for a single image.
	Instances []v1.Descriptor
	// Blobs are the manifests, configurations and layers, each once, by digest with the size.
	Blobs map[digest.Digest]int64
}

// Sum is the size of all blobs.
func (m *Image) Sum() (sum int64) {
	for _, size := range m.Blobs {
		sum += size
	}
	return sum
}

// Measure reads the manifests of an image; of an index only what is copied for the platforms ([store.Select]).
func Measure(ctx context.Context, from store.Reader, top v1.Descriptor, platforms []v1.Platform) (*Image, error) {
	m := &Image{Top: top, Blobs: map[digest.Digest]int64{}}
	read := func(ctx context.Context, n *store.Node) error {
		text, _, err := from.Manifest(ctx, n.Digest.String())
		if err != nil {
			return err
		}
		m.Blobs[n.Digest] = int64(len(text))
		n.Parts, err = store.PartsOf(text)
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		if n.Above != nil {
			m.Instances = append(m.Instances, n.Descriptor)
		}
		for _, b := range n.Parts.Blobs {
			m.Blobs[b.Digest] = b.Size
		}
		n.Entries, _ = store.Select(n.Entries, platforms)
		return nil
	}
	return m, store.Walk(ctx, store.Node{Descriptor: top}, store.WalkOptions{Read: read, Visit: visit})
}

// Total sums up the sizes of images by repository. A blob that several repositories have counts once: a registry mounts
// it, and a medium has it once. It is safe for concurrent use.
type Total struct {
	mu   sync.Mutex
	of   map[string]int64
	seen map[digest.Digest]bool
}

// Add adds the blobs of an image to a repository.
func (t *Total) Add(repository string, blobs map[digest.Digest]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of, t.seen = map[string]int64{}, map[digest.Digest]bool{}
	}
	for d, size := range blobs {
		if !t.seen[d] {
			t.seen[d] = true
			t.of[repository] += size
		}
	}
}

// ByRepository returns the bytes of each repository.
func (t *Total) ByRepository() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.of)
}

// Blobs is how many blobs there are.
func (t *Total) Blobs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen)
}
