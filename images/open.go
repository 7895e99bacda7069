package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"
)

// Image is an image that can be read: its manifest and configuration have been checked against their digests and
// sizes. Close it after use. Methods are safe for concurrent use where the source is.
type Image struct {
	// Digest is that of the manifest of the chosen platform.
	Digest digest.Digest
	Config v1.Image
	Layers []v1.Descriptor

	src types.ImageSource
}

// OpenOptions say how an image is opened. The zero value takes linux/amd64 and the library's defaults.
type OpenOptions struct {
	// Platform is chosen from an index. The image itself is not required to be for it if there is no choice.
	Platform v1.Platform
	System   *types.SystemContext
}

// Open opens an image in an OCI layout, "oci:DIR[:TAG]".
func Open(ctx context.Context, name string, o OpenOptions) (*Image, error) {
	dir, ok := strings.CutPrefix(name, string(OCI)+":")
	if !ok {
		return nil, fmt.Errorf("image %q: only oci:DIR[:TAG] can be opened", name)
	}
	path, tag := splitPath(dir)
	index, err := checkReadable(path)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	if err := index.checkChoice(path, tag); err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	ref, err := ParseSource(name)
	if err != nil {
		return nil, err
	}
	src, err := ref.NewImageSource(ctx, o.System)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	img, err := OpenSource(ctx, src, o)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	return img, nil
}

// checkReadable looks at a layout before the library does: that would wait for a FIFO, and read an index of any size.
func checkReadable(dir string) (*layoutIndex, error) {
	if err := checkLayout(dir); err != nil {
		return nil, err
	}
	index, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	if index == nil {
		return nil, fmt.Errorf("%w: no %s", ErrInvalid, indexFile)
	}
	for _, d := range index.descriptors {
		if err := checkDigest(d.Digest); err != nil {
			return nil, fmt.Errorf("%s: %w", indexFile, err)
		}
	}
	blobs := filepath.Join(dir, blobsDir, digest.SHA256.String())
	names, err := os.ReadDir(blobs)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if !n.Type().IsRegular() {
			return nil, fmt.Errorf("%w: %s is not a regular file", ErrInvalid, filepath.Join(blobs, n.Name()))
		}
	}
	return index, nil
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
	img := &Image{src: src}
	var instance *digest.Digest
	size := int64(-1)
	for depth := 0; ; depth++ {
		if depth > maxIndexDepth {
			return nil, fmt.Errorf("%w: indexes in indexes, more than %d deep", ErrLimit, maxIndexDepth)
		}
		text, kind, err := img.manifest(ctx, instance, size)
		if err != nil {
			return nil, err
		}
		if !manifest.MIMETypeIsMultiImage(kind) {
			return img, img.readManifest(ctx, text)
		}
		next, err := choose(text, o.Platform)
		if err != nil {
			return nil, err
		}
		instance, size = &next.Digest, next.Size
	}
}

// manifest reads and checks a manifest or an index.
func (i *Image) manifest(ctx context.Context, instance *digest.Digest, size int64) ([]byte, string, error) {
	text, kind, err := i.src.GetManifest(ctx, instance)
	if err != nil {
		return nil, "", fmt.Errorf("manifest: %w", err)
	}
	if len(text) > maxManifest {
		return nil, "", fmt.Errorf("manifest: %w: %d bytes (limit %d)", ErrLimit, len(text), maxManifest)
	}
	i.Digest = digest.FromBytes(text)
	if instance != nil && i.Digest != *instance {
		return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", ErrIntegrity, i.Digest, *instance)
	}
	if want, known := expectedDigest(i.src); instance == nil && known && i.Digest != want.Digest {
		return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", ErrIntegrity, i.Digest, want.Digest)
	}
	if size >= 0 && int64(len(text)) != size {
		return nil, "", fmt.Errorf("manifest: %w: size is %d and not %d", ErrIntegrity, len(text), size)
	}
	kind, err = manifestKind(text, kind)
	return text, kind, err
}

// manifestKind is the media type of a manifest, provided that its text and what came with it agree.
func manifestKind(text []byte, kind string) (string, error) {
	var m struct {
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
		Layers    []json.RawMessage `json:"layers"`
		Config    json.RawMessage   `json:"config"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("%w: not a manifest: %v", ErrInvalid, err)
	}
	if m.Manifests != nil && (m.Layers != nil || m.Config != nil) {
		return "", fmt.Errorf("%w: ambiguous manifest: it has images and layers", ErrInvalid)
	}
	if given, _, err := mime.ParseMediaType(kind); err == nil {
		kind = given
	}
	if kind == "" {
		kind = m.MediaType
	}
	if m.MediaType != "" && m.MediaType != kind {
		return "", fmt.Errorf("%w: media type %.80q, but the manifest says %.80q", ErrInvalid, kind, m.MediaType)
	}
	switch kind {
	case v1.MediaTypeImageIndex, manifest.DockerV2ListMediaType:
		if m.Manifests == nil {
			return "", fmt.Errorf("%w: media type %.80q, but no list of images", ErrInvalid, kind)
		}
	case v1.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType:
		if m.Manifests != nil {
			return "", fmt.Errorf("%w: media type %.80q, but a list of images", ErrInvalid, kind)
		}
	default:
		return "", fmt.Errorf("%w: unsupported media type %.80q of a manifest", ErrInvalid, kind)
	}
	return kind, nil
}

// expectedDigest is the descriptor that an OCI layout's index has for the image, where the source is one.
func expectedDigest(src types.ImageSource) (v1.Descriptor, bool) {
	return layoutDescriptor(src.Reference())
}

// choose picks the image for the platform. Of several the first is taken.
func choose(text []byte, p v1.Platform) (v1.Descriptor, error) {
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: index: %v", ErrInvalid, err)
	}
	if len(index.Manifests) > maxIndexEntries {
		return v1.Descriptor{}, fmt.Errorf("index: %w: %d entries (limit %d)", ErrLimit, len(index.Manifests), maxIndexEntries)
	}
	var seen []string
	for _, d := range index.Manifests {
		if err := checkDigest(d.Digest); err != nil {
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
	}
	slices.Sort(seen)
	return v1.Descriptor{}, fmt.Errorf("%w: no image for %s/%s in the index, which has %s", ErrInvalid, p.OS, p.Architecture, strings.Join(slices.Compact(seen), ", "))
}

func (i *Image) readManifest(ctx context.Context, text []byte) error {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: manifest: %v", ErrInvalid, err)
	}
	if m.ArtifactType != "" || m.Config.MediaType != v1.MediaTypeImageConfig && m.Config.MediaType != manifest.DockerV2Schema2ConfigMediaType {
		return fmt.Errorf("%w: not an image: its configuration is %.80q", ErrInvalid, m.Config.MediaType)
	}
	if len(m.Layers) > maxLayers {
		return fmt.Errorf("%w: %d layers (limit %d)", ErrLimit, len(m.Layers), maxLayers)
	}
	for n, l := range m.Layers {
		if err := checkDigest(l.Digest); err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
		if len(l.URLs) > 0 {
			return fmt.Errorf("%w: layer %d is a foreign layer, kept elsewhere", ErrInvalid, n)
		}
		if l.Size < 0 {
			return fmt.Errorf("%w: layer %d: size %d", ErrInvalid, n, l.Size)
		}
	}
	i.Layers = m.Layers
	config, err := i.readConfig(ctx, m.Config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := json.Unmarshal(config, &i.Config); err != nil {
		return fmt.Errorf("%w: configuration: %v", ErrInvalid, err)
	}
	if ids := i.Config.RootFS.DiffIDs; len(ids) != len(i.Layers) {
		return fmt.Errorf("%w: configuration: %d diff_ids for %d layers", ErrIntegrity, len(ids), len(i.Layers))
	}
	for _, id := range i.Config.RootFS.DiffIDs {
		if err := checkDigest(id); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	return nil
}

func (i *Image) readConfig(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	if d.Size < 0 || d.Size > maxManifest {
		return nil, fmt.Errorf("%w: size %d (limit %d)", ErrLimit, d.Size, maxManifest)
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
	info := types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}
	r, _, err := i.src.GetBlob(ctx, info, none.NoCache)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{newVerifier(contextReader{ctx, r}, d.Digest, d.Size), r}, nil
}

// checkDigest refuses everything but a well-formed sha256 digest.
func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%w: invalid digest %.120q: %v", ErrInvalid, string(d), err)
	}
	if d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: invalid digest %.120q: unsupported algorithm", ErrInvalid, string(d))
	}
	return nil
}
