package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/layers"
)

// part is a layer to build and its description in the result.
type part struct {
	kind     LayerKind
	packages []string
	dir      string
	layer    layers.Layer
	// stacked is a layer of another image, which is not written again. proof is a layer that replaces the written one
	// if the content is equal.
	stacked, proof *Layer
	key            digest.Digest
	notices        *cataloglayer.Notices // of the caches; nil without any
}

// openBases opens the base for every platform.
func openBases(ctx context.Context, o *Options) (bases []*base, err error) {
	bases = make([]*base, len(o.platforms()))
	if o.Base == nil {
		return bases, nil
	}
	read := map[digest.Digest]bool{}
	for i, p := range o.platforms() {
		if bases[i], err = openBase(ctx, o, o.Base, p); err != nil {
			return nil, errors.Join(err, closeBases(bases))
		}
		if o.TrimBase {
			if err := bases[i].trim(ctx, read); err != nil {
				return nil, errors.Join(err, closeBases(bases))
			}
		}
	}
	return bases, nil
}

// closeBases closes bases that no image owns.
func closeBases(bases []*base) error {
	var err error
	for _, b := range bases {
		if b != nil {
			err = errors.Join(err, b.src.Close())
		}
	}
	return err
}

// asLayer describes a written part.
func (p part) asLayer(b layers.Blob, mediaType string) Layer {
	return Layer{
		Kind: p.kind, Packages: p.packages, Key: p.key, dir: p.dir, MediaType: mediaType,
		Digest: b.Digest, DiffID: b.DiffID, Size: b.Size, Uncompressed: b.Uncompressed, Content: p.contentSize(),
	}
}

// contentSize returns the size of the catalogs in a package layer.
func (p part) contentSize() int64 {
	if p.kind != LayerPackages {
		return 0
	}
	return p.layer.Size()
}

// describe describes the part after it was written, or the layer that replaces it because the content is equal.
func (p part) describe(b layers.Blob, mediaType string) Layer {
	l := p.asLayer(b, mediaType)
	if p.proof == nil || p.proof.DiffID != l.DiffID {
		return l
	}
	same := *p.proof
	same.Key, same.Content, same.Uncompressed = p.keyAs(same.MediaType), l.Content, l.Uncompressed
	if same.Digest == l.Digest {
		same.remote = nil // the bytes are here already
	}
	return same
}

// keyAs returns the key that the part has in a layer of a media type; empty if it has none.
func (p part) keyAs(mediaType string) digest.Digest {
	c, ok := compressionOf(mediaType)
	if !ok || p.key == "" {
		return ""
	}
	key, err := p.layer.Key(layers.Options{Compression: c})
	if err != nil {
		return ""
	}
	return key
}

// inFormat describes a layer of another image with the media type of a format.
func (l Layer) inFormat(f Format) (Layer, error) {
	mediaType, err := convertLayerType(f, l.MediaType)
	l.MediaType = mediaType
	return l, err
}

// assemble builds the image from layers that are written or lazy: for each platform its base, its server, and the
// common layers.
func assemble(o *Options, store *layers.Store, lazy map[digest.Digest]*lazyLayer, bases []*base,
	servers, common []Layer) (*Image, error) {
	img := newImage()
	img.lazy = lazy
	for i, p := range o.platforms() {
		ls := img.addBase(bases[i])
		if len(servers) > 0 {
			ls = append(ls, servers[i])
		}
		ls = append(ls, common...)
		for _, l := range ls {
			switch {
			case l.remote != nil:
				img.remote[l.Digest] = l.remote
			case l.Kind != LayerBase && lazy[l.Digest] == nil:
				img.files[l.Digest] = store.Path(l.Digest)
			}
		}
		img.addLayers(ls)
		config, err := imageConfig(o, p, bases[i], ls)
		if err != nil {
			return nil, err
		}
		text, err := imageManifest(o.Format, config, ls, o.manifestAnnotations(p, bases[i]))
		if err != nil {
			return nil, err
		}
		img.addPlatform(p, text, config, digest.FromBytes(config))
	}
	if err := img.complete(o.Format, o.indexAnnotations()); err != nil {
		return nil, err
	}
	img.mountable(o)
	return img, nil
}

func newImage() *Image {
	return &Image{
		manifests: map[digest.Digest][]byte{},
		configs:   map[digest.Digest][]byte{},
		files:     map[digest.Digest]string{},
		lazy:      map[digest.Digest]*lazyLayer{},
		bases:     map[digest.Digest]*base{},
		remote:    map[digest.Digest]*remoteBlob{},
		lenders:   map[digest.Digest][]string{},
	}
}

// addBase makes the image the owner of a base, if there is one, and returns its layers.
func (i *Image) addBase(b *base) []Layer {
	if b == nil {
		return nil
	}
	for _, l := range b.layers {
		i.bases[l.Digest] = b
	}
	i.closers = append(i.closers, b.src)
	return slices.Clone(b.layers)
}

// addPlatform adds the manifest and the configuration of one platform.
func (i *Image) addPlatform(p v1.Platform, text, config []byte, id digest.Digest) {
	pi := PlatformImage{Platform: p, Digest: digest.FromBytes(text), Config: id}
	i.Platforms = append(i.Platforms, pi)
	i.manifests[pi.Digest], i.configs[id] = text, config
}

// complete sets the manifest of the image, or the index of its platforms, and its totals.
func (i *Image) complete(f Format, annotations map[string]string) error {
	only := i.Platforms[0]
	i.Digest, i.MediaType, i.manifest = only.Digest, imageType(f), i.manifests[only.Digest]
	if len(i.Platforms) > 1 {
		text, err := index(f, i.Platforms, i.manifests, annotations)
		if err != nil {
			return err
		}
		i.Digest, i.MediaType, i.manifest = digest.FromBytes(text), indexType(f), text
	}
	i.sum()
	return nil
}

// partWriter writes the parts of an image that are not cached.
type partWriter struct {
	o         *Options
	parts     []part
	mediaType string
	store     *layers.Store

	layers []Layer // of all parts
	lazy   map[digest.Digest]*lazyLayer
}

func newPartWriter(o *Options, parts []part, mediaType string) *partWriter {
	return &partWriter{
		o: o, parts: parts, mediaType: mediaType, store: layers.NewStore(o.Dir),
		layers: make([]Layer, len(parts)), lazy: map[digest.Digest]*lazyLayer{},
	}
}

// write determines for each part whether it is cached, and writes the others.
func (w *partWriter) write(ctx context.Context) error {
	notices := make([][]string, len(w.parts))
	var todo []layers.Layer
	var at []int
	if w.o.Planned != nil {
		w.o.Planned(len(w.parts))
	}
	for i, p := range w.parts {
		if p.stacked != nil {
			w.layers[i] = *p.stacked
			continue
		}
		if l, ok := w.o.findKnown(p); ok {
			notices[i] = l.Notices
			w.remember(i, l)
			continue
		}
		if i < len(w.o.Servers) && w.o.serverLayers != nil {
			b, err := w.o.serverLayers.copyLayer(ctx, p.layer, w.o.layerOptions(), w.store)
			if err != nil {
				return err
			}
			w.done(i, b)
			continue
		}
		todo, at = append(todo, p.layer), append(at, i)
	}
	blobs, err := w.store.WriteAll(ctx, todo, w.o.layerOptions(), w.o.Jobs,
		func(n int, b layers.Blob) { w.done(at[n], b) })
	if err != nil {
		return err
	}
	for _, b := range blobs {
		// A written layer needs no other source of its bytes.
		delete(w.lazy, b.Digest)
	}
	for i, p := range w.parts {
		if w.layers[i].From != "" {
			if w.layers[i], err = w.layers[i].inFormat(w.o.Format); err != nil {
				return err
			}
		}
		w.o.report(append(notices[i], p.notices.Get()...))
	}
	return nil
}

// done records a written layer. Calls do not overlap.
func (w *partWriter) done(i int, b layers.Blob) {
	p := w.parts[i]
	w.o.Cache.storeLayer(p.key, b, w.store.Path(b.Digest), p.notices.Get())
	w.layers[i] = p.describe(b, w.mediaType)
	if w.o.Events != nil {
		w.o.Events(w.layers[i])
	}
}

// remember makes a part a cached layer.
func (w *partWriter) remember(i int, l knownLayer) {
	p := w.parts[i]
	b := layers.Blob{Name: p.layer.Name, Digest: l.Digest, DiffID: l.DiffID, Size: l.Size, Uncompressed: l.Uncompressed,
		Compression: l.Compression}
	w.lazy[b.Digest] = &lazyLayer{part: p, o: w.o.layerOptions(), blob: b, known: w.o.Cache, store: w.store}
	w.layers[i] = p.describe(b, w.mediaType)
	w.layers[i].Remembered = true
	if w.o.Events != nil {
		w.o.Events(w.layers[i])
	}
}

// staleError reports a layer that differs from its cache record. The record is removed, and the next build writes the
// layer.
type staleError struct {
	Layer     string
	Was, Made digest.Digest
}

func (e *staleError) Error() string {
	return fmt.Sprintf("layer %s: the cache recorded %s, but it is %s; the record has been removed: run the command "+
		"again, or with --no-cache",
		e.Layer, e.Was, e.Made)
}

// lazyLayer is a layer with a known digest. Its bytes are read from the cache, or written, only when a destination
// needs them. It is safe for concurrent use.
type lazyLayer struct {
	part  part
	o     layers.Options
	blob  layers.Blob
	known *Cache
	store *layers.Store

	mu sync.Mutex
}

// open opens the bytes of the layer.
func (l *lazyLayer) open(ctx context.Context) (io.ReadCloser, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.store.Has(l.blob.Digest) {
		if r, ok := l.known.blob(ctx, l.blob); ok {
			return r, l.blob.Size, nil
		}
		if err := l.write(ctx); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.Open(l.store.Path(l.blob.Digest))
	return f, l.blob.Size, err
}

// write writes the layer into the store.
func (l *lazyLayer) write(ctx context.Context) error {
	b, err := l.store.Write(ctx, l.part.layer, l.o)
	if err != nil {
		return err
	}
	if b.Digest != l.blob.Digest || b.DiffID != l.blob.DiffID || b.Size != l.blob.Size {
		l.known.forget(l.part.key)
		return &staleError{Layer: b.Name, Was: l.blob.Digest, Made: b.Digest}
	}
	l.known.keepBlob(b, l.store.Path(b.Digest))
	return nil
}

// path returns the file of the layer, if it has been written.
func (l *lazyLayer) path() (string, bool) {
	return l.store.Path(l.blob.Digest), l.store.Has(l.blob.Digest)
}

// file returns a file of the layer, written from the cache if necessary.
func (l *lazyLayer) file(ctx context.Context) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, ok := l.path()
	if !ok && l.known != nil {
		ok = l.known.blobs.CopyTo(ctx, l.blob.Digest, l.blob.Size, path)
	}
	return path, ok
}

// NeedsInput reports whether layers may be written only when the image is copied: the input must then not change until
// the image is closed.
func (i *Image) NeedsInput() bool { return len(i.lazy) > 0 }
