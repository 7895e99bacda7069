//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	library "go.podman.io/image/v5/storage"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// source is an image in a store. A store has the files of layers and not their archives: layers are read uncompressed,
// and have the digests of the configuration. So a manifest with those is made. The digest of the image is that of its
// own manifest, by which podman and registries know it.
type source struct {
	store.Single
	library  types.ImageSource
	original digest.Digest
}

// OpenSource opens an image in a store. Layers are unpacked into temp, one at a time. The caller must close the place.
func OpenSource(ctx context.Context, n Name, temp string) (_ *transport.Place, err error) {
	opened, err := Open(ctx, n.Place)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Release())
		}
	}()
	library, err := n.findStored(ctx, opened, temp)
	if err != nil {
		return nil, err
	}
	s := &source{library: library}
	if err := s.describe(ctx, n); err != nil {
		return nil, err
	}
	return &transport.Place{Reader: s, Top: s.Top, Digest: s.original, Original: library,
		Close: func() error { return errors.Join(library.Close(), opened.Release()) }}, nil
}

// findStored finds the image by its name, and then by that name with "localhost/", as podman names local builds.
func (n Name) findStored(ctx context.Context, store *Store, temp string) (types.ImageSource, error) {
	names := []string{n.Image}
	if !HasHost(n.Image) {
		names = append(names, "localhost/"+n.Image)
	}
	var first error
	for _, name := range names {
		ref, err := library.Transport.ParseStoreReference(store.Store, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
		}
		src, err := ref.NewImageSource(ctx, &types.SystemContext{BigFilesTemporaryDir: temp})
		switch {
		case err == nil:
			return src, nil
		case !errors.Is(err, library.ErrNoSuchImage) && !errors.Is(err, storage.ErrImageUnknown):
			return nil, err
		case first == nil:
			first = fmt.Errorf("%w: no such image in the store %s (%s)", fault.ErrInvalid, store.GraphRoot(),
				store.GraphDriverName())
		}
	}
	return nil, first
}

// describe reads the manifest and makes the one for uncompressed layers.
func (s *source) describe(ctx context.Context, n Name) error {
	text, kind, err := s.library.GetManifest(ctx, nil)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if err := verify.ManifestSize(int64(len(text))); err != nil {
		return err
	}
	if kind, err = verify.ManifestKind(text, kind); err != nil {
		return err
	}
	if manifest.MIMETypeIsMultiImage(kind) {
		return fmt.Errorf(
			"%w: a list of images in a store cannot be read: name one of its images, or push the list and read it "+
				"from the registry", fault.ErrInvalid)
	}
	s.original = digest.FromBytes(text)
	if want, ok := n.givenDigest(); ok && want != s.original {
		return fmt.Errorf("%w: digest mismatch: %s instead of %s", fault.ErrIntegrity, s.original, want)
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	if len(m.Layers) > limit.MaxLayers {
		return fmt.Errorf("%w: %d layers (limit %d)", fault.ErrLimit, len(m.Layers), limit.MaxLayers)
	}
	config, err := verify.ReadConfig(ctx, s.library, m.Config)
	if err != nil {
		return err
	}
	var c v1.Image
	if err := json.Unmarshal(config, &c); err != nil {
		return fmt.Errorf("%w: configuration: %v", fault.ErrInvalid, err)
	}
	infos, err := s.library.LayerInfosForCopy(ctx, nil)
	if err != nil {
		return err
	}
	if len(infos) != len(m.Layers) || len(infos) != len(c.RootFS.DiffIDs) {
		return fmt.Errorf("%w: the store has %d layers of the image, its manifest %d and its configuration %d",
			fault.ErrIntegrity, len(infos), len(m.Layers), len(c.RootFS.DiffIDs))
	}
	m.MediaType = kind
	for i, info := range infos {
		if m.Layers[i], err = s.layer(ctx, m.Layers[i], info, c.RootFS.DiffIDs[i], kind); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	made, err := json.Marshal(m)
	s.Single = store.NewSingle(made, kind)
	s.Entry = func(ctx context.Context, d digest.Digest) ([]byte, string, error) {
		return s.library.GetManifest(ctx, &d)
	}
	return err
}

// givenDigest returns the digest in a name, if it has one.
func (n Name) givenDigest() (digest.Digest, bool) {
	named, err := reference.ParseNormalizedNamed(n.Image)
	if err != nil {
		return "", false
	}
	d, ok := named.(reference.Digested)
	if !ok {
		return "", false
	}
	return d.Digest(), true
}

// layer returns the descriptor of an uncompressed layer. Annotations about its compressed form are removed.
func (s *source) layer(ctx context.Context, old v1.Descriptor, info types.BlobInfo, diffID digest.Digest,
	kind string) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: diffID, Size: info.Size,
		Annotations: maps.Clone(old.Annotations)}
	if kind == manifest.DockerV2Schema2MediaType {
		d.MediaType = manifest.DockerV2SchemaLayerMediaTypeUncompressed
	}
	maps.DeleteFunc(d.Annotations, func(key, _ string) bool { return strings.Contains(key, ".zstd-chunked.") })
	switch {
	case info.Digest == image.GzippedEmptyLayerDigest:
		// The library returns this constant for layers without files.
		d.Digest, d.Size, d.MediaType = info.Digest, int64(len(image.GzippedEmptyLayer)), info.MediaType
	case info.Digest != diffID:
		return d, fmt.Errorf("%w: the store has %s and the configuration %s", fault.ErrIntegrity, info.Digest, diffID)
	case info.Size < 0:
		// The store does not know the size.
		r, _, err := s.library.GetBlob(ctx, info, none.NoCache)
		if err != nil {
			return d, err
		}
		d.Size, err = io.Copy(io.Discard, ctxio.Reader{Ctx: ctx, R: r})
		if err = errors.Join(err, r.Close()); err != nil {
			return d, err
		}
	}
	return d, nil
}

// HasBlob tells whether the manifest names the blob, which can be opened: the library tells neither its size nor
// otherwise whether it has it.
func (s *source) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	parts, err := store.PartsOf(s.Text)
	if err != nil || !slices.ContainsFunc(parts.Blobs,
		func(b v1.Descriptor) bool { return b.Digest == d.Digest && b.Size == d.Size }) {
		return false, err
	}
	r, err := s.Blob(ctx, d, 0)
	if err != nil {
		return false, err
	}
	return true, r.Close()
}

// Blob opens a blob at an offset, by reading what is before it.
func (s *source) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		if err := verify.Digest(d.Digest); err != nil {
			return nil, err
		}
		r, _, err := s.library.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType},
			none.NoCache)
		if err != nil {
			return nil, err
		}
		return verify.Body(ctx, r, d.Digest, d.Size), nil
	}, from)
}
