package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Format is the kind of the types of manifests.
type Format string

// The values of [Format].
const (
	OCI    Format = "oci"
	Docker Format = "docker"
)

// Parse reads a format.
func Parse(text string) (Format, error) {
	switch f := Format(text); f {
	case OCI, Docker:
		return f, nil
	}
	return "", fmt.Errorf("%w: format %.40q, expected (oci|docker)", fault.ErrInvalid, text)
}

// Of returns the format of a manifest or index by its media type; empty for another type.
func Of(mediaType string) Format {
	switch mediaType {
	case v1.MediaTypeImageManifest, v1.MediaTypeImageIndex:
		return OCI
	case manifest.DockerV2Schema2MediaType, manifest.DockerV2ListMediaType:
		return Docker
	}
	return ""
}

// layerTypes are the types of layers: as the image specification names them, and as Docker does.
var layerTypes = [][2]string{
	{v1.MediaTypeImageLayerGzip, manifest.DockerV2Schema2LayerMediaType},
	{v1.MediaTypeImageLayer, manifest.DockerV2SchemaLayerMediaTypeUncompressed},
}

// LayerType returns the type of a layer in a format.
func LayerType(is string, f Format) (string, error) {
	for _, t := range layerTypes {
		if is == t[0] || is == t[1] {
			if f == Docker {
				return t[1], nil
			}
			return t[0], nil
		}
	}
	return "", fmt.Errorf("%w: a layer of the type %.100q has none in the %s format", fault.ErrInvalid, is, f)
}

// Manifest converts the manifest of an image. Docker's have no annotations.
func Manifest(text []byte, f Format) ([]byte, string, error) {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if !store.IsImageType(m.ArtifactType) || m.Subject != nil || m.Config.MediaType != v1.MediaTypeImageConfig &&
		m.Config.MediaType != manifest.DockerV2Schema2ConfigMediaType {
		return nil, "", fmt.Errorf("%w: an artifact is of the OCI format alone, and cannot be converted", fault.ErrInvalid)
	}
	for i, l := range m.Layers {
		kind, err := LayerType(l.MediaType, f)
		if err != nil {
			return nil, "", fmt.Errorf("layer %d: %w", i, err)
		}
		m.Layers[i].MediaType = kind
	}
	if f == OCI {
		m.Versioned, m.MediaType, m.Config.MediaType = specs.Versioned{SchemaVersion: 2}, v1.MediaTypeImageManifest,
			v1.MediaTypeImageConfig
		text, err := json.Marshal(m)
		return text, m.MediaType, err
	}
	layers := make([]manifest.Schema2Descriptor, len(m.Layers))
	for i, l := range m.Layers {
		layers[i] = manifest.Schema2Descriptor{MediaType: l.MediaType, Size: l.Size, Digest: l.Digest, URLs: l.URLs}
	}
	text, err := manifest.Schema2FromComponents(manifest.Schema2Descriptor{MediaType: manifest.DockerV2Schema2ConfigMediaType,
		Size: m.Config.Size, Digest: m.Config.Digest}, layers).Serialize()
	return text, manifest.DockerV2Schema2MediaType, err
}

// Index makes the index of entries, which are in the format. Docker's have no annotations.
func Index(entries []v1.Descriptor, annotations map[string]string, f Format) ([]byte, string, error) {
	if f == OCI {
		text, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
			Manifests: entries, Annotations: annotations})
		return text, v1.MediaTypeImageIndex, err
	}
	list := make([]manifest.Schema2ManifestDescriptor, len(entries))
	for i, e := range entries {
		if e.Platform == nil {
			return nil, "", fmt.Errorf("%w: %s is for no platform: a list of Docker's has images with platforms only",
				fault.ErrInvalid, e.Digest)
		}
		list[i] = manifest.Schema2ManifestDescriptor{
			Schema2Descriptor: manifest.Schema2Descriptor{MediaType: e.MediaType, Size: e.Size, Digest: e.Digest},
			Platform: manifest.Schema2PlatformSpec{OS: e.Platform.OS, Architecture: e.Platform.Architecture,
				Variant: e.Platform.Variant, OSVersion: e.Platform.OSVersion, OSFeatures: e.Platform.OSFeatures}}
	}
	text, err := manifest.Schema2ListFromComponents(list).Serialize()
	return text, manifest.DockerV2ListMediaType, err
}

// Image is an image at another place with the types of another format. Its blobs are those of the place; nothing is
// attached to it, as its digests are others.
type Image struct {
	store.Single
	from store.Reader
}

// To converts the manifests of an image, or of an index with all that is in it. The image is unchanged if it has the
// format already.
func To(ctx context.Context, from store.Reader, top v1.Descriptor, f Format) (store.Reader, v1.Descriptor, error) {
	texts := map[digest.Digest][]byte{}       // by their new digests
	made := map[digest.Digest]v1.Descriptor{} // by the old ones
	kinds := map[digest.Digest]string{}
	changed := false
	err := store.Walk(ctx, store.Node{Descriptor: top}, store.WalkOptions{
		Read: store.ReadFrom(from),
		Leave: func(_ context.Context, n *store.Node) (err error) {
			text, kind := n.Text, n.Kind
			switch {
			case manifest.MIMETypeIsMultiImage(kind):
				entries, err := store.IndexEntries(text)
				if err != nil {
					return err
				}
				for i, e := range entries {
					d := made[e.Digest]
					entries[i].MediaType, entries[i].Digest, entries[i].Size = d.MediaType, d.Digest, d.Size
					if manifest.MIMETypeIsMultiImage(d.MediaType) && f == Docker {
						return fmt.Errorf("%w: a list of Docker's has no lists in it", fault.ErrInvalid)
					}
				}
				var index v1.Index
				if err := json.Unmarshal(text, &index); err != nil {
					return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
				}
				if Of(kind) != f || entriesChanged(index.Manifests, entries) {
					if text, kind, err = Index(entries, index.Annotations, f); err != nil {
						return err
					}
					changed = true
				}
			case Of(kind) != f:
				if text, kind, err = Manifest(text, f); err != nil {
					return fmt.Errorf("%s: %w", n.Digest, err)
				}
				changed = true
			}
			d := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
			made[n.Digest], texts[d.Digest], kinds[d.Digest] = d, text, kind
			return nil
		},
	})
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("converting to the %s format: %w", f, err)
	}
	if !changed {
		return from, top, nil
	}
	is := made[top.Digest]
	single := store.Single{Top: is, Text: texts[is.Digest], Entry: func(_ context.Context, d digest.Digest) ([]byte, string, error) {
		if text, ok := texts[d]; ok {
			return text, kinds[d], nil
		}
		return nil, "", fmt.Errorf("%w: %.140q is not in the image", fs.ErrNotExist, d)
	}}
	return &Image{single, from}, is, nil
}

func entriesChanged(old, now []v1.Descriptor) bool {
	for i := range old {
		if old[i].Digest != now[i].Digest || old[i].MediaType != now[i].MediaType {
			return true
		}
	}
	return false
}

// Can tells where blobs are.
func (i *Image) Can() store.Abilities {
	is := i.from.Can()
	return store.Abilities{Complete: is.Complete, Repositories: is.Repositories, File: is.File}
}

// HasBlob tells whether the place has a blob.
func (i *Image) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	return i.from.HasBlob(ctx, d)
}

// Blob opens a blob of the place.
func (i *Image) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return i.from.Blob(ctx, d, from)
}

// ErrAttached is the error of an image that something is attached to, which names it by its digest: that changes.
var ErrAttached = errors.New("converting changes the digest, and what is attached to the image is for the one that it has")
