package images

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/types"
)

// libraryReference offers an image at a place to the containers library, as a reference and as the source of it. The
// image has no name there, so that no policy of the machine is about it.
type libraryReference struct{ src Source }

var (
	_ types.ImageReference = libraryReference{}
	_ types.ImageSource    = libraryReference{}
)

// errReadOnly is the error of what an image at a place cannot do.
var errReadOnly = errors.New("the image is only read")

func (r libraryReference) Transport() types.ImageTransport                       { return libraryTransport{} }
func (r libraryReference) StringWithinTransport() string                         { return r.src.Top.Digest.String() }
func (libraryReference) DockerReference() reference.Named                        { return nil }
func (libraryReference) PolicyConfigurationIdentity() string                     { return "" }
func (libraryReference) PolicyConfigurationNamespaces() []string                 { return nil }
func (r libraryReference) Reference() types.ImageReference                       { return r }
func (libraryReference) Close() error                                            { return nil }
func (libraryReference) HasThreadSafeGetBlob() bool                              { return true }
func (libraryReference) DeleteImage(context.Context, *types.SystemContext) error { return errReadOnly }

func (r libraryReference) NewImage(ctx context.Context, sys *types.SystemContext) (types.ImageCloser, error) {
	return image.FromSource(ctx, sys, r)
}

func (r libraryReference) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return r, nil
}

func (libraryReference) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errReadOnly
}

func (r libraryReference) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil {
		instance = &r.src.Top.Digest
	}
	return r.src.Manifest(ctx, instance.String())
}

func (r libraryReference) GetBlob(ctx context.Context, info types.BlobInfo,
	_ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	b, err := r.src.Blob(ctx, v1.Descriptor{MediaType: info.MediaType, Digest: info.Digest, Size: info.Size}, 0)
	return b, info.Size, err
}

// GetSignatures returns none: a copy has the signatures that its caller writes beside it, and the library's copy would
// fail at destinations that keep none.
func (libraryReference) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	return nil, nil
}

func (libraryReference) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}

// libraryTransport is the transport of images at places. It is not registered: they have no names.
type libraryTransport struct{}

func (libraryTransport) Name() string { return "bindery" }

func (libraryTransport) ParseReference(string) (types.ImageReference, error) { return nil, errReadOnly }

func (libraryTransport) ValidatePolicyConfigurationScope(string) error { return nil }
