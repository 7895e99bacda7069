package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/layers"
	"github.com/operator-bindery/bindery/internal/redact"
)

// maxConfig is the maximum length of a base image's configuration in bytes.
const maxConfig = 4 << 20

// Base is a base image.
type Base struct {
	// Name is its name for messages.
	Name string
	// Open opens it. It is called for each platform.
	Open func(context.Context) (*images.Source, error)
}

// NamedBase is the base image with a name that [images.Client.Open] accepts. The client must be open as long as the
// image that is built of it.
func NamedBase(client *images.Client, name string) (*Base, error) {
	if _, err := client.Transports().Source(name); err != nil {
		return nil, redact.Error(fmt.Errorf("image %.300q: %w", name, err))
	}
	return &Base{name, func(ctx context.Context) (*images.Source, error) { return client.Open(ctx, name) }}, nil
}

// base is the base image of one platform. Its layers are opened only when a destination needs their bytes.
type base struct {
	src    *images.Source
	config v1.Image
	layers []Layer
	infos  map[digest.Digest]v1.Descriptor
	// name is the reference of the image in a registry, else empty; top is the digest of its index or manifest.
	name string
	top  digest.Digest
}

// openBase opens a base image for a platform. If the base has images of both compressions, the compression in the
// options is preferred.
func openBase(ctx context.Context, o *Options, from *Base, p v1.Platform) (_ *base, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("base image %s: %w", redact.Text(from.Name), err)
		}
	}()
	choose := types.SystemContext{OSChoice: p.OS, ArchitectureChoice: p.Architecture, VariantChoice: p.Variant}
	src, err := from.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	b := &base{src: src, infos: map[digest.Digest]v1.Descriptor{}, name: src.Named(), top: src.Top.Digest}
	text, kind, err := b.chooseManifest(ctx, &choose, o.Compression == layers.Zstd)
	if err != nil {
		return nil, err
	}
	m, err := manifest.FromBlob(text, kind)
	if err != nil {
		return nil, err
	}
	if err := b.readConfig(ctx, m.ConfigInfo()); err != nil {
		return nil, err
	}
	if b.config.OS != p.OS || b.config.Architecture != p.Architecture {
		return nil, fmt.Errorf("the image is for %s/%s, not for %s/%s", b.config.OS, b.config.Architecture, p.OS,
			p.Architecture)
	}
	return b, b.addLayers(m.LayerInfos(), o.Format)
}

// chooseManifest reads the manifest of the image for the platform.
func (b *base) chooseManifest(ctx context.Context, choose *types.SystemContext, zstd bool) ([]byte, string, error) {
	text, kind, err := b.src.Manifest(ctx, b.top.String())
	if err != nil {
		return nil, "", err
	}
	if !manifest.MIMETypeIsMultiImage(kind) {
		return text, kind, nil
	}
	if !zstd {
		text = withoutZstd(text)
	}
	list, err := manifest.ListFromBlob(text, kind)
	if err != nil {
		return nil, "", err
	}
	instance, err := list.ChooseInstance(choose)
	if err != nil {
		return nil, "", fmt.Errorf("no image for %s/%s in the index, which has %s", choose.OSChoice,
			choose.ArchitectureChoice, platformsOf(list))
	}
	return b.src.Manifest(ctx, instance.String())
}

// platformsOf lists the platforms of an index for a message.
func platformsOf(list manifest.List) string {
	var names []string
	for _, d := range list.Instances() {
		i, err := list.Instance(d)
		if p := i.ReadOnly.Platform; err == nil && p != nil && len(names) < 20 {
			names = append(names, fmt.Sprintf("%.40q", p.OS+"/"+p.Architecture))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (b *base) readConfig(ctx context.Context, info types.BlobInfo) error {
	if info.Digest == "" {
		return errors.New("the image has no configuration (Docker's schema 1 is not supported)")
	}
	if err := info.Digest.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	r, err := b.src.Blob(ctx, v1.Descriptor{MediaType: info.MediaType, Digest: info.Digest, Size: info.Size}, 0)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxConfig {
		return fmt.Errorf("configuration: longer than %d bytes", maxConfig)
	}
	b.config, err = parseConfig(text, info.Digest)
	return err
}

// parseConfig parses a configuration and checks its digest.
func parseConfig(text []byte, want digest.Digest) (config v1.Image, err error) {
	if got := want.Algorithm().FromBytes(text); got != want {
		return config, fmt.Errorf("configuration: digest mismatch: %s instead of %s", got, want)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("configuration: %w", err)
	}
	return config, nil
}

func (b *base) addLayers(infos []manifest.LayerInfo, f Format) error {
	if ids := b.config.RootFS.DiffIDs; len(ids) != len(infos) {
		return fmt.Errorf("configuration: %d diff_ids for %d layers", len(ids), len(infos))
	}
	for i, l := range infos {
		if len(l.URLs) > 0 {
			return fmt.Errorf("layer %s is a foreign layer", l.Digest)
		}
		if err := l.Digest.Validate(); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		kind, err := convertLayerType(f, l.MediaType)
		if err != nil {
			return err
		}
		b.layers = append(b.layers, Layer{
			Kind: LayerBase, MediaType: kind, Digest: l.Digest, DiffID: b.config.RootFS.DiffIDs[i], Size: l.Size,
		})
		b.infos[l.Digest] = v1.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}
	}
	return nil
}

// blob opens a layer of the base.
func (b *base) blob(ctx context.Context, d digest.Digest) (io.ReadCloser, int64, error) {
	r, err := b.src.Blob(ctx, b.infos[d], 0)
	return r, b.infos[d].Size, err
}

// history returns the base's history, with entries added for layers without one: readers expect one per layer.
func (b *base) history() []v1.History {
	history := b.config.History
	mentioned := 0
	for _, h := range history {
		if !h.EmptyLayer {
			mentioned++
		}
	}
	if mentioned == len(b.layers) {
		return history
	}
	made := make([]v1.History, len(b.layers))
	for i := range made {
		made[i] = v1.History{Comment: "base image"}
	}
	return made
}
