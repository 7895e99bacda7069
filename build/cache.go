package build

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/internal/layers"
)

// Cache has the layers of earlier builds by the keys of their content, and what is known of the validity of catalogs.
// An entry may disappear at any time: the layer is then built again. It is safe for concurrent use, also by several
// processes. A nil *Cache is empty.
//
// The bytes of a blob are verified, notes are not: a user who can write to the directory of the notes controls the
// content of images.
type Cache struct {
	notes *blobcache.Notes // keys of layers, and of files and packages
	blobs *blobcache.Cache
}

// NewCache opens the cache whose layers are among cached blobs; its notes are in a directory beside them. warn, unless
// nil, is called once if notes can no longer be written. The caller closes the blobs after the cache.
func NewCache(blobs *blobcache.Cache, warn func(error)) (*Cache, error) {
	notes, err := blobs.OpenNotes(warn)
	if err != nil {
		return nil, err
	}
	return &Cache{notes, blobs}, nil
}

// Close closes the notes.
func (k *Cache) Close() error {
	if k == nil {
		return nil
	}
	return k.notes.Close()
}

// knownLayer is the note of a layer.
type knownLayer struct {
	Digest       digest.Digest      `json:"digest"`
	DiffID       digest.Digest      `json:"diffID"`
	Size         int64              `json:"bytes"`
	Uncompressed int64              `json:"uncompressed"`
	Compression  layers.Compression `json:"compression"`
	// Notices are the warnings of the build of the layer.
	Notices []string `json:"notices,omitempty"`
}

// layerNote is the key of the note of a layer.
func layerNote(key digest.Digest) digest.Digest { return noteKey("layer 1", key.String()) }

// noteKey is the key of a note of the given kind.
func noteKey(kind string, about ...string) digest.Digest {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", kind, about)
	return digest.NewDigest(digest.SHA256, h)
}

// find looks for a layer.
func (k *Cache) find(key digest.Digest, c layers.Compression) (knownLayer, bool) {
	if k == nil || key == "" {
		return knownLayer{}, false
	}
	text, ok := k.notes.Get(layerNote(key))
	if !ok {
		return knownLayer{}, false
	}
	var l knownLayer
	if json.Unmarshal(text, &l) != nil || !l.plausible(c) {
		k.forget(key)
		return knownLayer{}, false
	}
	return l, true
}

// plausible reports whether the fields can be those of a layer.
func (l knownLayer) plausible(c layers.Compression) bool {
	for _, d := range []digest.Digest{l.Digest, l.DiffID} {
		if d.Validate() != nil || d.Algorithm() != digest.SHA256 {
			return false
		}
	}
	return l.Size > 0 && l.Uncompressed > 0 && l.Compression == c
}

// keep caches a layer in a file. The blob is stored first: a note without its blob costs more than a blob without a
// note.
func (k *Cache) keep(key digest.Digest, b layers.Blob, path string, notices []string) {
	if k == nil || key == "" {
		return
	}
	k.keepBlob(b, path)
	text, err := json.Marshal(knownLayer{b.Digest, b.DiffID, b.Size, b.Uncompressed, b.Compression, notices})
	if err == nil {
		k.notes.Put(layerNote(key), text)
	}
}

// keepBlob copies a file into the blob cache. Errors are dropped: the file is then not cached, and built again.
func (k *Cache) keepBlob(b layers.Blob, path string) {
	if k.blobs == nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	r := k.blobs.Tee(b.Digest, b.Size, f)
	// The tee stores what passes through it, if all of it does.
	_, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, make([]byte, 128<<10))
	_ = r.Close()
}

// blob opens the bytes of a layer, which have been verified.
func (k *Cache) blob(ctx context.Context, b layers.Blob) (io.ReadCloser, bool) {
	if k == nil {
		return nil, false
	}
	return k.blobs.Open(ctx, b.Digest, b.Size)
}

func (k *Cache) forget(key digest.Digest) {
	if k != nil {
		k.notes.Forget(layerNote(key))
	}
}

// keyParts computes the keys of layers. It reads files that are not hashed yet, in parallel.
func keyParts(ctx context.Context, o *Options, parts []part) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.Jobs))
	for i := range parts {
		p := &parts[i]
		g.Go(func() (err error) {
			if p.layer, err = p.layer.Hash(ctx); err == nil {
				p.key, err = p.layer.Key(o.layerOptions())
			}
			return err
		})
	}
	return g.Wait()
}

// hashContents computes the digests of the files of packages, in parallel.
func hashContents(ctx context.Context, o *Options, contents []content) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.Jobs))
	for _, c := range contents {
		g.Go(func() error { return layers.HashEntries(ctx, c.entries) })
	}
	return g.Wait()
}

// known looks up the layer of a part without writing it.
func (o *Options) known(p part) (knownLayer, bool) {
	if l, ok := o.Cache.find(p.key, o.Compression); ok {
		return l, true
	}
	if o.Previous == nil || !o.Previous.Trusted || o.Cache == nil || p.key == "" {
		return knownLayer{}, false
	}
	b, ok := o.Previous.layers[p.key]
	l := knownLayer{b.Digest, b.DiffID, b.Size, b.Uncompressed, o.Compression, nil}
	if l.Uncompressed == 0 {
		l.Uncompressed = p.layer.Size() // manifests do not have it
	}
	return l, ok && l.plausible(o.Compression)
}

// report passes on the notices of written layers.
func (o *Options) report(notices []string) {
	if o.Warn == nil {
		return
	}
	for _, n := range notices {
		o.Warn(n)
	}
}
