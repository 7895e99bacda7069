package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// blobs copies the blobs of all manifests that are to be written, each once.
func (c *imageCopy) blobs(ctx context.Context, root *node) error {
	var all []v1.Descriptor
	sizes := verify.Sizes{}           // of the blobs of all manifests
	there := map[digest.Digest]bool{} // blobs of manifests that the target has
	for _, n := range root.list() {
		if n.parts == nil {
			continue
		}
		for _, d := range n.parts.inOrder() {
			if n.present {
				there[d.Digest] = true
				if !c.o.Whole {
					continue
				}
			}
			first, err := sizes.Add(d)
			if err != nil {
				return err
			}
			if !first {
				continue
			}
			if err := c.budget.TakeContent(d.Size, "an image"); err != nil {
				return err
			}
			c.account.Bytes += d.Size
			all = append(all, d)
		}
	}
	c.order = all
	c.account.Blobs = len(all)
	before := c.earlier(ctx, len(all)-len(there))
	return guard.Each(ctx, c.o.Jobs, all, func(ctx context.Context, _ int, d v1.Descriptor) error {
		if size, ok := before[d.Digest]; ok && size == d.Size || there[d.Digest] && c.trust {
			c.noteMove(d, Reused, "")
			return nil
		}
		return c.blob(ctx, d)
	})
}

func (c *imageCopy) blob(ctx context.Context, d v1.Descriptor) error {
	var sent atomic.Int64
	var opened atomic.Bool
	content := ContentOf(c.from, d)
	content.Repositories = append(content.Repositories, c.others...)
	if c.o.Elsewhere != nil {
		content.Repositories = append(content.Repositories, c.o.Elsewhere(d.Digest)...)
	}
	content.Ask = !c.o.Absent || !c.trust
	if !c.trust {
		content.Repositories = nil // a blob that was mounted may be the one that is missing
	}
	open := content.Open
	content.Open = func(ctx context.Context, from int64) (io.ReadCloser, error) {
		if opened.CompareAndSwap(false, true) {
			c.move(EventBlobStart, d, from)
		}
		body, err := open(ctx, from)
		if IsForeign(d) && errors.Is(err, fs.ErrNotExist) {
			return nil, errForeign
		}
		if err != nil {
			return nil, err
		}
		return &sentBody{ReadCloser: body, c: c, d: d, at: from, sent: &sent}, nil
	}
	if err := c.startUpload(ctx); err != nil {
		return err
	}
	from, err := c.to.WriteBlob(ctx, d, content)
	c.endUpload()
	c.mu.Lock()
	c.account.Sent += sent.Load()
	if errors.Is(err, errForeign) {
		c.account.Foreign = append(c.account.Foreign, d.Digest)
		slices.Sort(c.account.Foreign)
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, errForeign):
	case err != nil:
		return err
	case from != "":
		c.noteMove(d, Mounted, from)
	case opened.Load():
		c.noteMove(d, Pushed, "")
	default:
		c.noteMove(d, Reused, "")
	}
	return nil
}

// startUpload waits until another blob may be sent, which endUpload ends. One that waits for the same blob of another image
// counts too: the other one has begun.
func (c *imageCopy) startUpload(ctx context.Context) error {
	if c.o.Uploads == nil || c.to.Can().Staged {
		return nil
	}
	select {
	case c.o.Uploads <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *imageCopy) endUpload() {
	if c.o.Uploads != nil && !c.to.Can().Staged {
		<-c.o.Uploads
	}
}

// noteMove notes how a blob got there, and reports it. One that was sent in an earlier round stays so.
func (c *imageCopy) noteMove(d v1.Descriptor, how How, from string) {
	c.mu.Lock()
	if c.moves == nil {
		c.moves = map[digest.Digest]Move{}
	}
	if old, known := c.moves[d.Digest]; !known || how == Pushed || old.How == Reused {
		c.moves[d.Digest] = Move{Digest: d.Digest, Size: d.Size, How: how, From: from}
	}
	if how == Mounted {
		c.account.Mounted += d.Size
	}
	c.mu.Unlock()
	c.move(moveEvents[how], d, d.Size)
}

// moveEvents are the events of the ways in which blobs get to places.
var moveEvents = map[How]EventKind{Pushed: EventBlobDone, Mounted: EventBlobMounted, Reused: EventBlobReused}

// movesInOrder returns how the blobs got there, in the order of the manifests.
func (c *imageCopy) movesInOrder() (moves []Move) {
	for _, d := range c.order {
		if m, ok := c.moves[d.Digest]; ok {
			moves = append(moves, m)
		}
	}
	return moves
}

// fewBlobs is the number of blobs up to which each is asked for, rather than reading the manifest of an earlier image.
const fewBlobs = 4

// earlier returns the blobs and sizes of the images that the tags stand for now. A place that has a manifest has its
// blobs, so that these need no requests. If one is missing anyway, the place refuses the new manifest, and every blob is
// asked for. Manifests that cannot be read count as empty.
func (c *imageCopy) earlier(ctx context.Context, blobs int) map[digest.Digest]int64 {
	found := map[digest.Digest]int64{}
	if blobs <= fewBlobs || c.o.Absent || !c.trust || !c.to.Can().Complete {
		return found
	}
	// At most as many requests as can be saved.
	left := c.account.Manifests
	for _, n := range c.names {
		if n.Tag != "" && !reflist.Belongs(n.Tag) {
			c.addEarlier(ctx, n.Tag, found, &left)
		}
	}
	return found
}

// addEarlier reads one manifest and, of an index, the manifests in it, at most left in all.
func (c *imageCopy) addEarlier(ctx context.Context, name string, found map[digest.Digest]int64, left *int) {
	if *left <= 0 || ctx.Err() != nil {
		return
	}
	*left--
	text, _, err := c.to.Manifest(ctx, name)
	if err != nil {
		return
	}
	parts, err := PartsOf(text)
	if err != nil {
		return
	}
	for _, b := range parts.Blobs {
		if !IsForeign(b) {
			found[b.Digest] = b.Size
		}
	}
	for _, child := range parts.Manifests {
		c.addEarlier(ctx, child.Digest.String(), found, left)
	}
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
	io.ReadCloser
	c    *imageCopy
	d    v1.Descriptor
	at   int64
	told int64
	sent *atomic.Int64
}

// tellEvery is after how many bytes the progress of a blob is reported.
const tellEvery = 1 << 20

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.at += int64(n)
	b.sent.Add(int64(n))
	if b.at-b.told >= tellEvery {
		b.told = b.at
		b.c.move(EventBlobProgress, b.d, b.at)
	}
	return n, err
}

// Verifies is that of the body.
func (b *sentBody) Verifies(d digest.Digest, size int64) bool {
	return verify.Verifies(b.ReadCloser, d, size)
}

// manifests writes the manifests that are not there: those in an index before it. One with a subject is written again
// if the index is not there: an earlier run may have ended when it was written and not yet listed for its subject.
func (c *imageCopy) manifests(ctx context.Context, n *node) error {
	for _, child := range n.children {
		if child.refers && child.present && !n.present {
			child.present, child.written = false, false
		}
		if err := c.manifests(ctx, child); err != nil {
			return err
		}
	}
	if n.written || n.withTag {
		return nil
	}
	n.written = true
	return c.write(ctx, n, WriteOptions{Sparse: len(n.leftOut) > 0})
}

func (c *imageCopy) write(ctx context.Context, n *node, o WriteOptions) error {
	o.OverImage = c.o.Named
	err := c.to.WriteManifest(ctx, n.text, n.MediaType, o)
	if errors.Is(err, ErrSparse) {
		return c.sparseError(n.leftOut, err)
	}
	if err == nil {
		c.account.Sent += int64(len(n.text))
		c.account.Written++
		c.account.WrittenBytes += int64(len(n.text))
	}
	return err
}
