package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Image is an image that can be read: its manifest and configuration have been checked against their digests and
// sizes. Close it after use. Methods are safe for concurrent use where the source is, and those of a [Client] are.
type Image struct {
	// Name is what the image was opened by.
	Name string
	// Source tells which registry, mirror or file the image came from, where that is not what Name says.
	Source string
	// Top is the digest of what the name stands for, an index or a manifest.
	Top digest.Digest
	// Digest is that of the manifest of the chosen platform, and MediaType its type.
	Digest    digest.Digest
	MediaType string
	Config    v1.Image
	// ConfigText is the text of the configuration: images of docker's format have more in it than Config.
	ConfigText []byte
	Layers     []v1.Descriptor
	// ConfigDescriptor is what the manifest says of the configuration.
	ConfigDescriptor v1.Descriptor
	// Annotations are those of that manifest.
	Annotations map[string]string

	src        types.ImageSource
	cache      *blobcache.Cache
	repository string // of an image in a registry
	deadline   time.Time
	timeout    time.Duration
}

// Reference is what the same image can be had by again: REPOSITORY@DIGEST with the digest of what the tag named, for
// an image in a registry, and the name it was opened by for others.
func (i *Image) Reference() string {
	if i.repository == "" {
		return i.Name
	}
	return i.repository + "@" + i.Top.String()
}

// InRegistry tells whether the image was opened in a registry, and so has a name that others can pull it by.
func (i *Image) InRegistry() bool { return i.repository != "" }

// OpenOptions say how an image is opened. The zero value takes linux/amd64.
type OpenOptions struct {
	// Platform is chosen from an index. The image itself is not required to be for it if there is no choice.
	Platform v1.Platform
	// AnyPlatform takes, where an index has no image for Platform, its first one for Linux.
	AnyPlatform bool

	cache *blobcache.Cache
}

// Open opens an image on this machine, "oci:DIR[:TAG]" or another transport of the file system. A [Client] opens images
// in registries too.
func Open(ctx context.Context, name string, o OpenOptions) (_ *Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %.300q: %w", name, err)
		}
	}()
	n, err := parseSourceName(name)
	if err != nil {
		return nil, err
	}
	if n.transport == Docker {
		return nil, errors.New("is in a registry, and only oci:, oci-archive:, docker-archive:, dir: and containers-storage: can be opened here")
	}
	src, err := openHere(ctx, n, limit.Limits{}.WithDefaults(), "")
	if err != nil {
		return nil, err
	}
	img, err := OpenSource(ctx, src, o)
	if err != nil {
		return nil, err
	}
	img.Name = name
	return img, nil
}

// OpenSource opens the image that a source of any transport has, choosing the platform. It closes the source, also when
// it fails.
func OpenSource(ctx context.Context, src types.ImageSource, o OpenOptions) (_ *Image, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	if o.Platform.OS == "" {
		o.Platform.OS = "linux"
	}
	if o.Platform.Architecture == "" {
		o.Platform.Architecture = "amd64"
	}
	img := &Image{src: src, cache: o.cache}
	want, known := expectedDescriptor(src)
	var instance *digest.Digest
	for depth := 0; ; depth++ {
		if depth > limit.MaxIndexDepth {
			return nil, fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
		}
		text, kind, err := img.manifest(ctx, instance)
		if err != nil {
			return nil, err
		}
		if known {
			if err := img.checkManifest(text, want); err != nil {
				return nil, err
			}
		}
		if kind, err = verify.ManifestKind(text, kind); err != nil {
			return nil, err
		}
		if depth == 0 {
			img.Top = img.Digest
		}
		img.MediaType = kind
		if !manifest.MIMETypeIsMultiImage(kind) {
			if err := img.readManifest(ctx, text); err != nil {
				return nil, err
			}
			if depth == 0 {
				img.Digest = identityOf(src, text)
				img.Top = img.Digest
			}
			return img, nil
		}
		if want, err = choose(text, o.Platform, o.AnyPlatform); err != nil {
			return nil, err
		}
		instance, known = &want.Digest, true
	}
}

// manifest reads a manifest or an index.
func (i *Image) manifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	text, kind, err := i.src.GetManifest(ctx, instance)
	if err != nil {
		return nil, "", fmt.Errorf("manifest: %w", err)
	}
	if len(text) > limit.MaxManifest {
		return nil, "", fmt.Errorf("manifest: %w: %d bytes (limit %d)", fault.ErrLimit, len(text), limit.MaxManifest)
	}
	i.Digest = digest.FromBytes(text)
	return text, kind, nil
}

// checkManifest compares a manifest with its descriptor.
func (i *Image) checkManifest(text []byte, want v1.Descriptor) error {
	if i.Digest != want.Digest {
		return fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, i.Digest, want.Digest)
	}
	if int64(len(text)) != want.Size {
		return fmt.Errorf("manifest: %w: size is %d and not %d", fault.ErrIntegrity, len(text), want.Size)
	}
	return nil
}

// expectedDescriptor is what a source knows of its manifest before that is read.
func expectedDescriptor(src types.ImageSource) (v1.Descriptor, bool) {
	if local, ok := src.(interface {
		TopDescriptor() (v1.Descriptor, bool)
	}); ok {
		return local.TopDescriptor()
	}
	return v1.Descriptor{}, false
}

// identityOf is the digest that an image is known by, whose manifest is given: that of the manifest, unless the source had to make it.
func identityOf(src types.ImageSource, text []byte) digest.Digest {
	if s, ok := src.(interface{ Identity() digest.Digest }); ok {
		return s.Identity()
	}
	return digest.FromBytes(text)
}

// openHere opens an image on this machine.
func openHere(ctx context.Context, n sourceName, limits limit.Limits, temp string) (types.ImageSource, error) {
	if n.transport == Store {
		return imagestore.OpenSource(ctx, imagestore.Name{Place: n.path, Image: n.name}, temp)
	}
	ref, err := n.reference()
	if err != nil {
		return nil, err
	}
	src, err := layouts.OpenSource(ctx, layouts.Place{Format: layouts.Format(n.transport), Path: n.path, Name: n.name}, ref, limits, temp)
	if err != nil {
		return nil, err
	}
	return src, nil
}

// choose picks the image for the platform. Of several the first is taken; if there is none, any for Linux where that will do.
func choose(text []byte, p v1.Platform, orAny bool) (v1.Descriptor, error) {
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
	}
	if len(index.Manifests) > limit.MaxIndexEntries {
		return v1.Descriptor{}, fmt.Errorf("index: %w: %d entries (limit %d)", fault.ErrLimit, len(index.Manifests), limit.MaxIndexEntries)
	}
	var seen []string
	var other *v1.Descriptor
	for n, d := range index.Manifests {
		if err := verify.Digest(d.Digest); err != nil {
			return v1.Descriptor{}, fmt.Errorf("index: %w", err)
		}
		if d.Platform == nil {
			if len(index.Manifests) == 1 {
				return d, nil
			}
			continue
		}
		if d.Platform.OS == p.OS && d.Platform.Architecture == p.Architecture && (p.Variant == "" || p.Variant == d.Platform.Variant) {
			return d, nil
		}
		seen = append(seen, fmt.Sprintf("%.40q", d.Platform.OS+"/"+d.Platform.Architecture))
		if other == nil && d.Platform.OS == "linux" && isImage(d, len(index.Manifests)) {
			other = &index.Manifests[n]
		}
	}
	if orAny && other != nil {
		return *other, nil
	}
	slices.Sort(seen)
	return v1.Descriptor{}, fmt.Errorf("%w: no image for %s/%s in the index, which has %s", fault.ErrInvalid, p.OS, p.Architecture, strings.Join(slices.Compact(seen), ", "))
}

func (i *Image) readManifest(ctx context.Context, text []byte) error {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if m.ArtifactType != "" || m.Config.MediaType != v1.MediaTypeImageConfig && m.Config.MediaType != manifest.DockerV2Schema2ConfigMediaType {
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
	r, err := i.blob(ctx, d)
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

// Label is the value of a label in the image's configuration.
func (i *Image) Label(name string) (string, bool) {
	v, ok := i.Config.Config.Labels[name]
	return v, ok
}

// Close closes the image's source.
func (i *Image) Close() error { return i.src.Close() }

// blob opens a blob that fails to be read to its end if it has another digest or size than its descriptor.
func (i *Image) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, cached := i.cache.Open(d.Digest, d.Size)
	if s, remote := i.src.(*registry.Source); cached && remote {
		s.Reused(d)
	}
	if !cached {
		info := types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}
		fetched, _, err := i.src.GetBlob(ctx, info, none.NoCache)
		if err != nil {
			return nil, err
		}
		r = i.cache.Tee(d.Digest, d.Size, fetched)
	}
	return struct {
		io.Reader
		io.Closer
	}{verify.NewReader(ctxio.Reader{Ctx: ctx, R: r}, d.Digest, d.Size), r}, nil
}
