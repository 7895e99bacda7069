package build

import (
	"context"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/layers"
)

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
		if l, ok := w.o.known(p); ok {
			notices[i] = l.Notices
			w.remember(i, l)
			continue
		}
		if i < len(w.o.Servers) && w.o.serverLayers != nil {
			b, err := w.o.serverLayers.put(ctx, p.layer, w.o.layerOptions(), w.store)
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
	w.o.Cache.keep(p.key, b, w.store.Path(b.Digest), p.notices.Get())
	w.layers[i] = p.settled(b, w.mediaType)
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
	w.layers[i] = p.settled(b, w.mediaType)
	w.layers[i].Remembered = true
	if w.o.Events != nil {
		w.o.Events(w.layers[i])
	}
}
