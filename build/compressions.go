package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/layers"
)

// writeBoth writes the layers in both compressions, and makes an index of the images.
func writeBoth(ctx context.Context, o *Options, bases []*base, common []part) (*Image, error) {
	var variants [2]*Image
	for i, c := range []layers.Compression{layers.Gzip, layers.Zstd} {
		one := *o
		one.Compression = c
		if i > 0 {
			one.Warn = nil // would report everything twice
		}
		var err error
		if variants[i], err = writeImage(ctx, &one, bases, common); err != nil {
			return nil, err
		}
	}
	return merge(o, variants[0], variants[1])
}

// merge makes one index of an image or index with gzip layers and the same one with zstd layers. Those with gzip come
// first. Both have the same bases, which belong to the result.
func merge(o *Options, plain, dense *Image) (*Image, error) {
	if len(plain.Platforms) != len(dense.Platforms) {
		return nil, errors.New("the two compressions are for different platforms")
	}
	m := &Image{
		MediaType: v1.MediaTypeImageIndex,
		manifests: map[digest.Digest][]byte{}, configs: map[digest.Digest][]byte{},
		files: map[digest.Digest]string{}, bases: map[digest.Digest]*base{},
		known: plain.known, lazy: map[digest.Digest]*lazyLayer{}, lenders: map[digest.Digest][]string{},
		closers: plain.closers,
	}
	index := v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Annotations: o.indexAnnotations(),
	}
	for _, variant := range []*Image{plain, dense} {
		for _, p := range variant.Platforms {
			d := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: p.Digest, Size: int64(len(variant.manifests[p.Digest])), Platform: &p.Platform}
			if variant == dense {
				p.Compression = string(layers.Zstd)
				d.Annotations = map[string]string{AnnotationZstd: "true"}
			} else {
				p.Compression = string(layers.Gzip)
			}
			index.Manifests = append(index.Manifests, d)
			m.Platforms = append(m.Platforms, p)
		}
		m.addLayers(variant.Layers)
		copyInto(m.manifests, variant.manifests)
		copyInto(m.configs, variant.configs)
		copyInto(m.files, variant.files)
		copyInto(m.bases, variant.bases)
		copyInto(m.lazy, variant.lazy)
		copyInto(m.lenders, variant.lenders)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	m.Digest, m.manifest = digest.FromBytes(text), text
	m.sum()
	return m, nil
}

func copyInto[V any](to, from map[digest.Digest]V) {
	for k, v := range from {
		to[k] = v
	}
}

// withoutZstd is an index without the zstd images that it has with gzip too, which every client can read; the library
// would choose zstd. Other indexes are returned unchanged.
func withoutZstd(text []byte) []byte {
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return text
	}
	dense := func(d v1.Descriptor) bool { return d.Annotations[AnnotationZstd] == "true" }
	kept := slices.DeleteFunc(slices.Clone(index.Manifests), func(d v1.Descriptor) bool {
		return dense(d) && slices.ContainsFunc(index.Manifests, func(other v1.Descriptor) bool {
			return !dense(other) && reflect.DeepEqual(other.Platform, d.Platform)
		})
	})
	if len(kept) == len(index.Manifests) {
		return text
	}
	index.Manifests = kept
	if less, err := json.Marshal(index); err == nil {
		return less
	}
	return text
}
