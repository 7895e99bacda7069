package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// blobs copies the blobs of all manifests that are to be written, each once.
func (c *imageCopy) blobs(ctx context.Context, root *node) error {
	var all []v1.Descriptor
	sizes := verify.Sizes{} // of the blobs of all manifests
	var add func(n *node) error
	add = func(n *node) error {
		if n.present && !n.isIndex() {
			return nil
		}
		for _, d := range n.parts.Blobs {
			first, err := sizes.Add(d)
			if err != nil {
				return err
			}
			if !first {
				continue
			}
			if d.Size > c.limits.Content || c.content.Add(d.Size) > c.limits.Content {
				return fmt.Errorf("%w: an image of more than %d bytes", fault.ErrLimit, c.limits.Content)
			}
			all = append(all, d)
		}
		for _, child := range n.children {
			if err := add(child); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(root); err != nil {
		return err
	}
	c.account.Blobs = len(all)
	c.account.Bytes += c.content.Load()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.o.Jobs)
	for _, d := range all {
		g.Go(func() error {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			return c.blob(gctx, d)
		})
	}
	return g.Wait()
}

// blob copies one blob.
func (c *imageCopy) blob(ctx context.Context, d v1.Descriptor) error {
	var sent atomic.Int64
	var opened atomic.Bool
	content := ContentOf(c.from, d)
	content.Open = func(ctx context.Context, from int64) (io.ReadCloser, error) {
		if opened.CompareAndSwap(false, true) {
			c.move(transfer.EventBlobStart, d, from)
		}
		body, err := c.from.Blob(ctx, d, from)
		if err != nil {
			if IsForeign(d) && errors.Is(err, fs.ErrNotExist) {
				return nil, errForeign
			}
			return nil, &SourceError{err}
		}
		return &sentBody{body: body, c: c, d: d, at: from, sent: &sent}, nil
	}
	from, err := c.to.WriteBlob(ctx, d, content)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account.Sent += sent.Load()
	switch {
	case errors.Is(err, errForeign):
		c.account.Foreign = append(c.account.Foreign, d.Digest)
		slices.Sort(c.account.Foreign)
		return nil
	case err != nil:
		return err
	case from != "":
		c.account.Mounted += d.Size
		c.move(transfer.EventBlobMounted, d, d.Size)
	case opened.Load():
		c.move(transfer.EventBlobDone, d, d.Size)
	default:
		c.move(transfer.EventBlobReused, d, d.Size)
	}
	return nil
}

// errForeign is the error of a layer that the source does not have and need not have.
var errForeign = errors.New("a layer that only other servers have")

// IsForeign tells whether a layer may be missing in registries (image specification, "Non-Distributable Layers").
func IsForeign(d v1.Descriptor) bool {
	return len(d.URLs) > 0 && (strings.Contains(d.MediaType, ".nondistributable.") ||
		strings.Contains(d.MediaType, ".rootfs.foreign."))
}

// sentBody counts what is read of a blob.
type sentBody struct {
	body io.ReadCloser
	c    *imageCopy
	d    v1.Descriptor
	at   int64
	told int64
	sent *atomic.Int64
}

// tellEvery is after how many bytes the progress of a blob is reported.
const tellEvery = 1 << 20

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.at += int64(n)
	b.sent.Add(int64(n))
	if b.at-b.told >= tellEvery {
		b.told = b.at
		b.c.move(transfer.EventBlobProgress, b.d, b.at)
	}
	if err != nil && err != io.EOF {
		err = &SourceError{err}
	}
	return n, err
}

func (b *sentBody) Close() error { return b.body.Close() }

// Verifies tells whether the body compares itself with its digest, so that the destination need not.
func (b *sentBody) Verifies(d digest.Digest, size int64) bool {
	return verify.Verifies(b.body, d, size)
}

// manifests writes the manifests that are not there: those in an index before it.
func (c *imageCopy) manifests(ctx context.Context, n *node) error {
	for _, child := range n.children {
		if err := c.manifests(ctx, child); err != nil {
			return err
		}
	}
	if n.written {
		return nil
	}
	n.written = true
	return c.write(ctx, n, "")
}

// write writes a manifest under a tag, or under its digest.
func (c *imageCopy) write(ctx context.Context, n *node, tag string) (err error) {
	err = c.to.WriteManifest(ctx, n.text, n.MediaType, WriteOptions{Tag: tag, Sparse: len(n.leftOut) > 0})
	if errors.Is(err, ErrSparse) {
		return c.sparseError(n.leftOut, err)
	}
	if err == nil {
		c.account.Sent += int64(len(n.text))
	}
	return err
}
