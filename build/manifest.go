package build

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/layers"
)

// layerType is the media type of a layer in a format.
func layerType(f Format, c layers.Compression) (string, error) {
	oci := map[layers.Compression]string{
		layers.Gzip:         v1.MediaTypeImageLayerGzip,
		layers.Zstd:         v1.MediaTypeImageLayerZstd,
		layers.Uncompressed: v1.MediaTypeImageLayer,
	}
	docker := map[layers.Compression]string{
		layers.Gzip:         manifest.DockerV2Schema2LayerMediaType,
		layers.Uncompressed: manifest.DockerV2SchemaLayerMediaTypeUncompressed,
	}
	known := oci
	if f == FormatDocker {
		known = docker
	}
	if t, ok := known[c]; ok {
		return t, nil
	}
	return "", fmt.Errorf("the %s format does not support %s layers", f, c)
}

// convertLayerType is the media type in the format f of a base's layer.
func convertLayerType(f Format, mediaType string) (string, error) {
	c, ok := compressionOf(mediaType)
	if !ok {
		return "", fmt.Errorf("a layer has the media type %.80q, which cannot be passed on", mediaType)
	}
	return layerType(f, c)
}

// compressionOf is the compression of a layer with a media type of any format.
func compressionOf(mediaType string) (layers.Compression, bool) {
	compressions := map[string]layers.Compression{
		v1.MediaTypeImageLayerGzip:                        layers.Gzip,
		v1.MediaTypeImageLayerZstd:                        layers.Zstd,
		v1.MediaTypeImageLayer:                            layers.Uncompressed,
		manifest.DockerV2Schema2LayerMediaType:            layers.Gzip,
		manifest.DockerV2SchemaLayerMediaTypeUncompressed: layers.Uncompressed,
	}
	c, ok := compressions[mediaType]
	return c, ok
}

// manifestType is the type of the images in an index, or the type itself if it is an image's.
func manifestType(mediaType string) string {
	switch mediaType {
	case v1.MediaTypeImageIndex:
		return v1.MediaTypeImageManifest
	case manifest.DockerV2ListMediaType:
		return manifest.DockerV2Schema2MediaType
	}
	return mediaType
}

// imageManifest is the text of an image's manifest.
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

// index is the text of the index of several images.
func index(f Format, of []PlatformImage, sizes map[digest.Digest]int64, annotations map[string]string) ([]byte, error) {
	if f == FormatDocker {
		descs := make([]manifest.Schema2ManifestDescriptor, len(of))
		for i, p := range of {
			descs[i] = manifest.Schema2ManifestDescriptor{
				Schema2Descriptor: manifest.Schema2Descriptor{MediaType: manifest.DockerV2Schema2MediaType, Size: sizes[p.Digest], Digest: p.Digest},
				Platform:          manifest.Schema2PlatformSpec{Architecture: p.Platform.Architecture, OS: p.Platform.OS, Variant: p.Platform.Variant},
			}
		}
		return manifest.Schema2ListFromComponents(descs).Serialize()
	}
	descs := make([]v1.Descriptor, len(of))
	for i, p := range of {
		platform := p.Platform
		descs[i] = v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Size: sizes[p.Digest], Digest: p.Digest, Platform: &platform}
	}
	return json.Marshal(v1.Index{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   v1.MediaTypeImageIndex,
		Manifests:   descs,
		Annotations: annotations,
	})
}

// indexType is the media type of an index in a format.
func indexType(f Format) string {
	if f == FormatDocker {
		return manifest.DockerV2ListMediaType
	}
	return v1.MediaTypeImageIndex
}

// imageType is the media type of an image's manifest in a format.
func imageType(f Format) string { return manifestType(indexType(f)) }

// withLabels is the base's labels with others, which override them.
func withLabels(base, add map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, add)
	return out
}
