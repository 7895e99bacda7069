package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/layers"
)

var layerTypes = [...]struct {
	format      Format
	compression layers.Compression
	mediaType   string
}{
	{FormatOCI, layers.Gzip, v1.MediaTypeImageLayerGzip},
	{FormatOCI, layers.Zstd, v1.MediaTypeImageLayerZstd},
	{FormatOCI, layers.Uncompressed, v1.MediaTypeImageLayer},
	{FormatDocker, layers.Gzip, manifest.DockerV2Schema2LayerMediaType},
	{FormatDocker, layers.Uncompressed, manifest.DockerV2SchemaLayerMediaTypeUncompressed},
}

func layerType(f Format, c layers.Compression) (string, error) {
	for _, t := range layerTypes {
		if t.compression == c && (t.format == FormatDocker) == (f == FormatDocker) {
			return t.mediaType, nil
		}
	}
	return "", fmt.Errorf("the %s format does not support %s layers", f, c)
}

// convertLayerType returns the media type in the format f for a base's layer.
func convertLayerType(f Format, mediaType string) (string, error) {
	c, ok := compressionOf(mediaType)
	if !ok {
		return "", fmt.Errorf("a layer has the media type %.80q, which cannot be passed on", mediaType)
	}
	return layerType(f, c)
}

// compressionOf returns the compression of a layer's media type in any format.
func compressionOf(mediaType string) (layers.Compression, bool) {
	for _, t := range layerTypes {
		if t.mediaType == mediaType {
			return t.compression, true
		}
	}
	return "", false
}

// manifestType returns the type of the images in an index, or the type itself for an image.
func manifestType(mediaType string) string {
	switch mediaType {
	case v1.MediaTypeImageIndex:
		return v1.MediaTypeImageManifest
	case manifest.DockerV2ListMediaType:
		return manifest.DockerV2Schema2MediaType
	}
	return mediaType
}

func imageManifest(f Format, config []byte, ls []Layer, annotations map[string]string) ([]byte, error) {
	if f == FormatDocker {
		descs := make([]manifest.Schema2Descriptor, len(ls))
		for i, l := range ls {
			descs[i] = manifest.Schema2Descriptor{MediaType: l.MediaType, Size: l.Size, Digest: l.Digest}
		}
		return manifest.Schema2FromComponents(manifest.Schema2Descriptor{
			MediaType: manifest.DockerV2Schema2ConfigMediaType,
			Size:      int64(len(config)),
			Digest:    digest.FromBytes(config),
		}, descs).Serialize()
	}
	descs := make([]v1.Descriptor, len(ls))
	for i, l := range ls {
		descs[i] = v1.Descriptor{MediaType: l.MediaType, Size: l.Size, Digest: l.Digest, Annotations: l.annotations()}
	}
	return json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config: v1.Descriptor{
			MediaType: v1.MediaTypeImageConfig,
			Size:      int64(len(config)),
			Digest:    digest.FromBytes(config),
		},
		Layers:      descs,
		Annotations: annotations,
	})
}

// index returns the text of the index of several images.
func index(f Format, of []PlatformImage, manifests map[digest.Digest][]byte,
	annotations map[string]string) ([]byte, error) {
	if f == FormatDocker {
		descs := make([]manifest.Schema2ManifestDescriptor, len(of))
		for i, p := range of {
			descs[i] = manifest.Schema2ManifestDescriptor{
				Schema2Descriptor: manifest.Schema2Descriptor{
					MediaType: manifest.DockerV2Schema2MediaType, Size: int64(len(manifests[p.Digest])),
					Digest: p.Digest,
				},
				Platform: manifest.Schema2PlatformSpec{Architecture: p.Platform.Architecture, OS: p.Platform.OS,
					Variant: p.Platform.Variant},
			}
		}
		return manifest.Schema2ListFromComponents(descs).Serialize()
	}
	descs := make([]v1.Descriptor, len(of))
	for i, p := range of {
		descs[i] = v1.Descriptor{
			MediaType: v1.MediaTypeImageManifest, Size: int64(len(manifests[p.Digest])), Digest: p.Digest,
			Platform: &p.Platform,
		}
		if p.Compression == string(layers.Zstd) {
			descs[i].Annotations = map[string]string{AnnotationZstd: "true"}
		}
	}
	return json.Marshal(v1.Index{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   v1.MediaTypeImageIndex,
		Manifests:   descs,
		Annotations: annotations,
	})
}

func indexType(f Format) string {
	if f == FormatDocker {
		return manifest.DockerV2ListMediaType
	}
	return v1.MediaTypeImageIndex
}

func imageType(f Format) string { return manifestType(indexType(f)) }

// withLabels returns the base's labels with others, which override them.
func withLabels(base, add map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, add)
	return out
}

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
func withoutZstd(entries []v1.Descriptor) []v1.Descriptor {
	dense := func(d v1.Descriptor) bool { return d.Annotations[AnnotationZstd] == "true" }
	return slices.DeleteFunc(slices.Clone(entries), func(d v1.Descriptor) bool {
		return dense(d) && slices.ContainsFunc(entries, func(other v1.Descriptor) bool {
			return !dense(other) && reflect.DeepEqual(other.Platform, d.Platform)
		})
	})
}
