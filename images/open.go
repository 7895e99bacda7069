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

	src        types.ImageSource
	cache      *blobcache.Cache
	noted      func(v1.Manifest) // unless nil, receives the manifest of an image
	repository string            // if the image is in a registry
	deadline   time.Time
	timeout    time.Duration
}

// Reference returns a name of the same image: REPOSITORY@DIGEST with the digest of the index or manifest for an image
// in a registry, else Name.
func (i *Image) Reference() string {
	if i.repository == "" {
		return i.Name
	}
	return i.repository + "@" + i.Top.String()
}

// InRegistry tells whether the image is in a registry, so that others can pull it by its name.
func (i *Image) InRegistry() bool { return i.repository != "" }

// OpenOptions configure [Open]. The zero value selects linux/amd64.
type OpenOptions struct {
	// Platform selects an image of an index. An image that is not in an index is not compared with it.
	Platform v1.Platform
	// AnyPlatform selects the first image for Linux if an index has none for Platform.
	AnyPlatform bool

	cache     *blobcache.Cache
	manifest  func(v1.Manifest) // unless nil, receives the manifest
	admission *admission
}

// Open opens an image on this machine, such as "oci:DIR[:TAG]". [Client.Open] opens images in registries too.
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
		return nil,
			errors.New(
				"is in a registry, and only oci:, oci-archive:, docker-archive:, dir: and containers-storage: can be " +
					"opened here")
	}
	src, err := openHere(ctx, n, Limits{}.WithDefaults(), "")
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

// OpenSource opens the image of a source of any transport, for the platform of the options. It closes the source, also
// after an error.
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
	img := &Image{src: src, cache: o.cache, noted: o.manifest}
	want, known := expectedDescriptor(src)
	var instance *digest.Digest
	var admitted verdict
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
		if admitted, err = o.admission.admit(ctx, admitted, instance, text, kind); err != nil {
			return nil, err
		}
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

// expectedDescriptor returns the descriptor of the manifest, if the source knows it.
func expectedDescriptor(src types.ImageSource) (v1.Descriptor, bool) {
	if local, ok := src.(interface {
		TopDescriptor() (v1.Descriptor, bool)
	}); ok {
		return local.TopDescriptor()
	}
	return v1.Descriptor{}, false
}

// identityOf returns the digest of an image: that of its manifest, unless the source has made another manifest.
func identityOf(src types.ImageSource, text []byte) digest.Digest {
	if s, ok := src.(interface{ Identity() digest.Digest }); ok {
		return s.Identity()
	}
	return digest.FromBytes(text)
}

// openHere opens an image that is in files or a store.
func openHere(ctx context.Context, n sourceName, limits Limits, temp string) (types.ImageSource, error) {
	if n.transport == Store {
		return imagestore.OpenSource(ctx, imagestore.Name{Place: n.path, Image: n.name}, temp)
	}
	ref, err := n.reference()
	if err != nil {
		return nil, err
	}
	src, err := layouts.OpenSource(ctx, n.place(), ref, limits, temp)
	if err != nil {
		return nil, err
	}
	return src, nil
}

// choose returns the first image of an index for a platform. If there is none and orAny is set, it returns the first
// for Linux.
func choose(text []byte, p v1.Platform, orAny bool) (v1.Descriptor, error) {
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
	}
	if len(index.Manifests) > limit.MaxIndexEntries {
		return v1.Descriptor{}, fmt.Errorf("index: %w: %d entries (limit %d)", fault.ErrLimit, len(index.Manifests),
			limit.MaxIndexEntries)
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
		if d.Platform.OS == p.OS && d.Platform.Architecture == p.Architecture && (p.Variant == "" ||
			p.Variant == d.Platform.Variant) {
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
	return v1.Descriptor{}, fmt.Errorf("%w: no image for %s/%s in the index, which has %s", fault.ErrInvalid, p.OS,
		p.Architecture, strings.Join(slices.Compact(seen), ", "))
}

func (i *Image) readManifest(ctx context.Context, text []byte) error {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if m.ArtifactType != "" ||
		m.Config.MediaType != v1.MediaTypeImageConfig && m.Config.MediaType != manifest.DockerV2Schema2ConfigMediaType {
		return fmt.Errorf("%w: not an image: its configuration is %.80q", fault.ErrInvalid, m.Config.MediaType)
	}
	if i.noted != nil {
		i.noted(m)
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

// Label returns the value of a label in the configuration.
func (i *Image) Label(name string) (string, bool) {
	v, ok := i.Config.Config.Labels[name]
	return v, ok
}

// Close closes the image's source.
func (i *Image) Close() error { return i.src.Close() }

// blob opens a blob. The reader fails at the end if the digest or size differs from the descriptor.
func (i *Image) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	r, cached := i.cache.Open(ctx, d.Digest, d.Size)
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
