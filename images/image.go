package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Image is an open image, whose manifest and configuration have been compared with their digests and sizes. Close it
// after use. An image of a [Client] is safe for concurrent use.
type Image struct {
	// Name is the name that the image was opened by.
	Name string
	// Source is the registry or mirror that the image was read from, if it is not that of Name.
	Source string
	// Top is the digest of the index or manifest that the name refers to.
	Top digest.Digest
	// Digest and MediaType are those of the manifest for the platform.
	Digest    digest.Digest
	MediaType string
	Config    v1.Image
	// ConfigText is the text of the configuration. In docker's format it has more fields than Config.
	ConfigText []byte
	Layers     []v1.Descriptor
	// ConfigDescriptor is the descriptor of the configuration in the manifest.
	ConfigDescriptor v1.Descriptor
	// Annotations are those of the manifest.
	Annotations map[string]string

	// Repository is the repository that the image is named by, HOST/NAME without tag and digest; empty if the name has
	// none, as that of a layout.
	Repository string

	opened *candidate
}

// Reference returns a name of the same image: REPOSITORY@DIGEST with the digest of the index or manifest for an image
// in a registry, else Name.
func (i *Image) Reference() string {
	if !i.InRegistry() {
		return i.Name
	}
	return i.Repository + "@" + i.Top.String()
}

// InRegistry tells whether the image is in a registry, so that others can pull it by its name.
func (i *Image) InRegistry() bool { return i.opened != nil && i.opened.inRegistry() }

func (i *Image) readManifest(ctx context.Context, text []byte) error {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if !store.IsImageType(m.ArtifactType) ||
		m.Config.MediaType != v1.MediaTypeImageConfig && m.Config.MediaType != manifest.DockerV2Schema2ConfigMediaType {
		return fmt.Errorf("%w: not an image: its configuration is %.80q", fault.ErrInvalid, m.Config.MediaType)
	}
	if len(m.Layers) > limit.MaxLayers {
		return fmt.Errorf("%w: %d layers (limit %d)", fault.ErrLimit, len(m.Layers), limit.MaxLayers)
	}
	for n, l := range m.Layers {
		if err := verify.Digest(l.Digest); err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
		if len(l.URLs) > 0 {
			return fmt.Errorf("%w: layer %d is a foreign layer, kept elsewhere", fault.ErrInvalid, n)
		}
		if l.Size < 0 {
			return fmt.Errorf("%w: layer %d: size %d", fault.ErrInvalid, n, l.Size)
		}
	}
	i.Layers, i.Annotations, i.ConfigDescriptor = m.Layers, m.Annotations, m.Config
	config, err := i.readConfig(ctx, m.Config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	i.ConfigText = config
	if err := json.Unmarshal(config, &i.Config); err != nil {
		return fmt.Errorf("%w: configuration: %v", fault.ErrInvalid, err)
	}
	if ids := i.Config.RootFS.DiffIDs; len(ids) != len(i.Layers) {
		return fmt.Errorf("%w: configuration: %d diff_ids for %d layers", fault.ErrIntegrity, len(ids), len(i.Layers))
	}
	for _, id := range i.Config.RootFS.DiffIDs {
		if err := verify.Digest(id); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	return nil
}

func (i *Image) readConfig(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	if d.Size < 0 || d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("%w: size %d (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	r, err := i.opened.reader.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, r); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// Label returns the value of a label in the configuration.
func (i *Image) Label(name string) (string, bool) {
	v, ok := i.Config.Config.Labels[name]
	return v, ok
}

// Close closes the image's source.
func (i *Image) Close() error { return closePlace(i.opened.place) }

// Named returns the reference of the image in a registry as it was given, with the tag "latest" if it had none; empty
// if the name is none.
func (i *Image) Named() string { return i.opened.named() }
