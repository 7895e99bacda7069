package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images"
)

// transport is the transport of assembled images. It is not registered: its images have no names.
type transport struct{}

func (transport) Name() string { return images.AssembledTransport }

func (transport) ParseReference(string) (types.ImageReference, error) {
	return nil, errors.New("an assembled image has no name")
}

func (transport) ValidatePolicyConfigurationScope(string) error { return nil }

// Transport implements [types.ImageReference], as do the following methods.
func (*Image) Transport() types.ImageTransport { return transport{} }

// StringWithinTransport is for messages only.
func (i *Image) StringWithinTransport() string { return i.Digest.String() }

// DockerReference returns nil: an assembled image has no name.
func (*Image) DockerReference() reference.Named { return nil }

// PolicyConfigurationIdentity returns "".
func (*Image) PolicyConfigurationIdentity() string { return "" }

// PolicyConfigurationNamespaces returns none.
func (*Image) PolicyConfigurationNamespaces() []string { return nil }

// NewImage opens the image, which can be opened repeatedly.
func (i *Image) NewImage(ctx context.Context, sys *types.SystemContext) (types.ImageCloser, error) {
	src := source{i}
	img, err := image.FromSource(ctx, sys, src)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return img, nil
}

// NewImageSource opens the image for reading its manifests and blobs. The source is safe for concurrent use.
func (i *Image) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return source{i}, nil
}

// NewImageDestination fails: an assembled image cannot be written to.
func (*Image) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errors.New("an assembled image cannot be written to")
}

// DeleteImage fails: an assembled image is not stored.
func (*Image) DeleteImage(context.Context, *types.SystemContext) error {
	return errors.New("an assembled image cannot be deleted")
}

// source reads an assembled image. It is safe for concurrent use.
type source struct{ image *Image }

func (s source) Reference() types.ImageReference { return s.image }

// Close does nothing: open files belong to the image.
func (source) Close() error { return nil }

func (s source) GetManifest(_ context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil || *instance == s.image.Digest {
		return s.image.manifest, s.image.MediaType, nil
	}
	text, ok := s.image.manifests[*instance]
	if !ok {
		return nil, "", fmt.Errorf("no image %s in the index", *instance)
	}
	return text, manifestType(s.image.MediaType), nil
}

func (source) HasThreadSafeGetBlob() bool { return true }

// GetBlob opens a configuration or a layer. A layer may be written, or fetched from the base or another image, only at
// this point.
func (s source) GetBlob(ctx context.Context, info types.BlobInfo,
	_ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if config, ok := s.image.configs[info.Digest]; ok {
		return io.NopCloser(bytes.NewReader(config)), int64(len(config)), nil
	}
	if path, ok := s.image.files[info.Digest]; ok {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		stat, err := f.Stat()
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, stat.Size(), nil
	}
	if l, ok := s.image.lazy[info.Digest]; ok {
		return l.open(ctx)
	}
	if b, ok := s.image.bases[info.Digest]; ok {
		return b.blob(ctx, info.Digest)
	}
	if l, ok := s.image.remote[info.Digest]; ok {
		return l.open(ctx)
	}
	return nil, 0, fmt.Errorf("no blob %s in the image", info.Digest)
}

// LocalBlob returns the file of a blob, if there is one.
func (s source) LocalBlob(d digest.Digest) (string, bool) {
	if l, ok := s.image.lazy[d]; ok {
		return l.path()
	}
	path, ok := s.image.files[d]
	return path, ok
}

// BlobFile returns a file of a blob that is made for it.
func (s source) BlobFile(ctx context.Context, d digest.Digest) (string, bool) {
	if l, ok := s.image.lazy[d]; ok {
		return l.file(ctx)
	}
	return "", false
}

func (source) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) { return nil, nil }

func (source) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}
