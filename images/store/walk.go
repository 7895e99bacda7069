package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Node is a manifest or index that [Walk] comes to.
type Node struct {
	// Descriptor is what the index above says of it, or what the walk was given.
	v1.Descriptor
	// Above is the index in which it was met first; nil for the outermost. Depth is how many indexes are above it.
	Above *Node
	Depth int
	// Text is its text, and Kind the media type that came with it: if that is empty, the one of the descriptor counts.
	Text []byte
	Kind string
	// Parts is what it refers to; nil if it was not read. Blobs are the configuration and then the layers.
	Parts *Parts
	// Entries are the entries of an index that are visited after it. Visit may choose some of them; of nil nothing
	// below is read.
	Entries []v1.Descriptor
}

// WalkOptions say what [Walk] does with each manifest. A nil function does nothing.
type WalkOptions struct {
	// Read sets Text and Kind, or Parts, of a node that has neither. One that it leaves as it is, for it is missing or
	// need not be read, is visited without. With AtOnce it is called concurrently and ahead: then Above and Depth may
	// be those of another index that names it, too.
	Read func(ctx context.Context, n *Node) error
	// Visit is called for each manifest before anything below it is read, and Leave after all that is below it. Both
	// are called one at a time and in order.
	Visit, Leave func(ctx context.Context, n *Node) error
	// AtOnce is how many entries of an index are read concurrently; 1 if it is zero.
	AtOnce int
	// Repeats visits an entry each time that it is named, and not only the first time.
	Repeats bool
}

// ReadFrom returns a function for [WalkOptions] that reads every manifest at a place.
func ReadFrom(r Reader) func(ctx context.Context, n *Node) error {
	return func(ctx context.Context, n *Node) (err error) {
		n.Text, n.Kind, err = r.Manifest(ctx, n.Digest.String())
		return err
	}
}

// Walk visits the manifests of an image: an index before its entries, these in their order and each with what is below
// it, every digest once. A manifest refers to its configuration and then its layers, in Parts. The text of the
// outermost may be given; the digest may then be empty. What is attached to an image is what referrers.ReadTree reads.
//
// Errors are those of the functions and of the context; of the class [fault.ErrLimit] for indexes in more than
// [limit.MaxIndexDepth] indexes, more than [limit.MaxIndexEntries] entries of all indexes together, and texts of more
// than [limit.MaxManifest] bytes. A text has the digest by which it is named, or the error is [fault.ErrIntegrity]; and
// the size that the index says: then, and if two sizes are named for one digest, it is [fault.ErrInvalid]. If Read sets
// no Parts, they are those of the text, which must be that of a manifest: see [verify.ManifestKind] and [PartsOf].
func Walk(ctx context.Context, top Node, o WalkOptions) error {
	if top.Digest == "" && top.Text != nil {
		top.Digest = digest.FromBytes(top.Text)
	}
	if err := verify.Digest(top.Digest); err != nil {
		return err
	}
	w := &walk{o: o, seen: map[digest.Digest]bool{}, sizes: verify.Sizes{}, reads: map[digest.Digest]*reading{}}
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return w.visit(ctx, &top)
}

// walk is one run of [Walk]. Its fields belong to the goroutine that visits.
type walk struct {
	o       WalkOptions
	seen    map[digest.Digest]bool
	sizes   verify.Sizes
	entries int // of all indexes
	reads   map[digest.Digest]*reading
	running sync.WaitGroup
}

// reading is a manifest that is being read.
type reading struct {
	node Node
	err  error
	done chan struct{}
}

// visit visits a manifest with what is below it.
func (w *walk) visit(ctx context.Context, n *Node) error {
	if w.seen[n.Digest] && !w.o.Repeats {
		return nil
	}
	w.seen[n.Digest] = true
	if err := w.read(ctx, n); err != nil {
		return err
	}
	if err := call(ctx, w.o.Visit, n); err != nil {
		return err
	}
	if err := w.visitEntries(ctx, n); err != nil {
		return err
	}
	return call(ctx, w.o.Leave, n)
}

func call(ctx context.Context, f func(context.Context, *Node) error, n *Node) error {
	if f == nil {
		return nil
	}
	return f(ctx, n)
}

func (w *walk) visitEntries(ctx context.Context, n *Node) error {
	if len(n.Entries) > 0 && n.Depth >= limit.MaxIndexDepth {
		return fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
	}
	entry := func(d v1.Descriptor) *Node { return &Node{Descriptor: d, Above: n, Depth: n.Depth + 1} }
	next := 0
	for i, d := range n.Entries {
		for ; next < len(n.Entries) && next < i+w.o.AtOnce; next++ {
			if ahead := n.Entries[next]; !w.seen[ahead.Digest] {
				w.startReading(ctx, entry(ahead))
			}
		}
		if err := w.visit(ctx, entry(d)); err != nil {
			return err
		}
	}
	return nil
}

// startReading reads a manifest, unless that is done.
func (w *walk) startReading(ctx context.Context, n *Node) *reading {
	r := w.reads[n.Digest]
	if r == nil {
		r = &reading{node: *n, done: make(chan struct{})}
		w.reads[n.Digest] = r
		w.running.Go(func() {
			defer close(r.done)
			defer guard.Recover(&r.err)
			if n.Text == nil && n.Parts == nil {
				r.err = call(ctx, w.o.Read, &r.node)
			}
			if r.err == nil {
				r.err = r.node.parse()
			}
		})
	}
	return r
}

// parse checks the text and reads the parts, if there is one.
func (n *Node) parse() (err error) {
	if n.Text == nil {
		return nil
	}
	if err := verify.ManifestSize(int64(len(n.Text))); err != nil {
		return err
	}
	if err := verify.Manifest(n.Text, n.Digest); err != nil {
		return err
	}
	if n.Parts != nil {
		return nil
	}
	n.Kind = cmp.Or(n.Kind, n.MediaType)
	if n.Kind, err = verify.ManifestKind(n.Text, n.Kind); err == nil {
		n.Parts, err = PartsOf(n.Text)
	}
	if err != nil {
		return fmt.Errorf("manifest %s: %w", n.Digest, err)
	}
	return nil
}

// read has a manifest read and counts what it refers to.
func (w *walk) read(ctx context.Context, n *Node) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := w.startReading(ctx, n)
	delete(w.reads, n.Digest)
	<-r.done
	if r.err != nil {
		return r.err
	}
	n.Text, n.Kind, n.Parts = r.node.Text, r.node.Kind, r.node.Parts
	if n.Parts == nil {
		return nil
	}
	n.Entries = n.Parts.Manifests
	if w.entries += len(n.Entries); w.entries > limit.MaxIndexEntries {
		return fmt.Errorf("index: %w: more than %d entries", fault.ErrLimit, limit.MaxIndexEntries)
	}
	if n.Text == nil {
		return nil
	}
	size := int64(len(n.Text))
	if n.Above != nil && n.Size != size {
		return fmt.Errorf("%w: the index names %s with %d bytes, and it has %d", fault.ErrInvalid, n.Digest, n.Size, size)
	}
	for _, d := range slices.Concat(n.Parts.Blobs, n.Parts.Manifests, []v1.Descriptor{{Digest: n.Digest, Size: size}}) {
		if _, err := w.sizes.Add(d); err != nil {
			return fmt.Errorf("manifest %s: %w", n.Digest, err)
		}
	}
	return nil
}
