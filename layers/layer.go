package layers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// ErrChanged is returned for a file that changed between planning a layer and writing it.
var ErrChanged = errors.New("the file changed while it was read")

// Layer is the content of one layer of an image.
type Layer struct {
	// Name identifies the layer in errors and progress; it is not part of the content.
	Name string
	// Work is the cost of writing the layer in addition to Entries, in bytes to read; zero is a good estimate.
	Work    int64
	Entries []Entry
	// More, unless nil, returns additional entries when the layer is written: those that take memory or time to build.
	More func(context.Context) ([]Entry, error)
	// MoreID identifies everything that the entries of More depend on besides Entries and their contents: the program
	// that builds them, their format, and options. A layer with More and without MoreID has no key.
	MoreID string
	// Finished are earlier results of writing the layer by compression. Their bytes are copied if the options are the
	// same.
	Finished []Finished
}

// Finished is a layer that was written before.
type Finished struct {
	Blob Blob
	Open func() (io.ReadCloser, error)
}

// Size estimates the work of writing the layer: the bytes of its files, and of the files from which others are made.
func (l Layer) Size() int64 {
	n := l.Work
	for _, e := range l.Entries {
		n += e.Size
	}
	return n
}

// Options are the inputs of a layer's bytes besides its entries.
type Options struct {
	Compression Compression
}

// Blob is a written layer. Sizes are in bytes.
type Blob struct {
	Name         string
	Digest       digest.Digest
	DiffID       digest.Digest
	Size         int64
	Uncompressed int64
	Compression  Compression
}

// Write writes the layer to w. Memory does not grow with the layer. It is safe for concurrent use.
func (l Layer) Write(ctx context.Context, w io.Writer, o Options) (Blob, error) {
	c, err := newCodec(o.Compression)
	if err != nil {
		return Blob{}, err
	}
	return write(ctx, w, c, l, o)
}

// write writes the layer through a compressor that may be reused.
func write(ctx context.Context, w io.Writer, c codec, l Layer, o Options) (Blob, error) {
	for _, f := range l.Finished {
		if o == (Options{Compression: f.Blob.Compression}) {
			return f.copy(ctx, w, l.Name)
		}
	}
	entries := l.Entries
	if l.More != nil {
		more, err := l.More(ctx)
		if err != nil {
			return Blob{}, fmt.Errorf("layer %s: %w", l.Name, err)
		}
		entries = append(slices.Clone(entries), more...)
	}
	entries, err := order(entries)
	if err != nil {
		return Blob{}, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	packed := newMeter(w)
	c.Reset(packed)
	plain := newMeter(c)
	if err := writeTar(ctx, plain, entries); err != nil {
		return Blob{}, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	if err := c.Close(); err != nil {
		return Blob{}, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	return Blob{
		Name:         l.Name,
		Digest:       packed.digest(),
		DiffID:       plain.digest(),
		Size:         packed.n,
		Uncompressed: plain.n,
		Compression:  o.Compression,
	}, nil
}

// copy copies the layer and verifies its digest.
func (f Finished) copy(ctx context.Context, w io.Writer, name string) (_ Blob, err error) {
	b := f.Blob
	b.Name = name
	r, err := f.Open()
	if err != nil {
		return Blob{}, fmt.Errorf("layer %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out := newMeter(w)
	if _, err := io.Copy(out, ctxio.Reader{Ctx: ctx, R: r}); err != nil {
		return Blob{}, fmt.Errorf("layer %s: %w", name, err)
	}
	if out.n != b.Size || out.digest() != b.Digest {
		return Blob{}, fmt.Errorf("layer %s: %w: its %d bytes have the digest %s, not %s", name, ErrChanged, out.n,
			out.digest(), b.Digest)
	}
	return b, nil
}

// meter is a writer that counts and digests.
type meter struct {
	w io.Writer
	h hash.Hash
	n int64
}

func newMeter(w io.Writer) *meter { return &meter{w: w, h: sha256.New()} }

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.h.Write(p[:n])
	m.n += int64(n)
	return n, err
}

func (m *meter) digest() digest.Digest { return digest.NewDigest(digest.SHA256, m.h) }
