package build

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/layers"
)

// bothCompressions makes an index of an image that is written in both compressions.
func bothCompressions(o *Options, write func(*Options) (*Image, error)) (*Image, error) {
	var variants [2]*Image
	for i, c := range []layers.Compression{layers.Gzip, layers.Zstd} {
		one := *o
		one.Compression = c
		if i > 0 {
			one.Warn = nil // otherwise everything would be reported twice
		}
		var err error
		if variants[i], err = write(&one); err != nil {
			return nil, err
		}
	}
	return merge(o, variants[0], variants[1])
}

// merge builds one index of an image or index with gzip layers and the same with zstd layers. Those with gzip come
// first. Both have the same bases, which belong to the result.
func merge(o *Options, plain, dense *Image) (*Image, error) {
	if len(plain.Platforms) != len(dense.Platforms) {
		return nil, errors.New("the two compressions are for different platforms")
	}
	m := newImage()
	m.known, m.closers = plain.known, plain.closers
	for _, variant := range []*Image{plain, dense} {
		for _, p := range variant.Platforms {
			p.Compression = string(layers.Gzip)
			if variant == dense {
				p.Compression = string(layers.Zstd)
			}
			m.Platforms = append(m.Platforms, p)
		}
		m.addLayers(variant.Layers)
		maps.Copy(m.manifests, variant.manifests)
		maps.Copy(m.configs, variant.configs)
		maps.Copy(m.files, variant.files)
		maps.Copy(m.bases, variant.bases)
		maps.Copy(m.lazy, variant.lazy)
		maps.Copy(m.lenders, variant.lenders)
	}
	return m, m.complete(o.Format, o.indexAnnotations())
}

// withoutZstd returns an index without the zstd images that it also has with gzip, which every client can read; the
// library would choose zstd. Other indexes are returned unchanged.
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
