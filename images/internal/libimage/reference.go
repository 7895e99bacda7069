package libimage

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
)

// Transport is the name of the transport of images that are offered to the library.
const Transport = "bindery"

// Reference returns an image at a place for the library. The place stays open when its sources are closed. It has no
// signatures: what is written beside an image is written by its writer, and the library's copy fails at places that
// keep none.
func Reference(place store.Reader, top v1.Descriptor) types.ImageReference {
	return &offered{place, top}
}

// offered is a place that the library reads. It is reference and source in one.
type offered struct {
	place store.Reader
	top   v1.Descriptor
}

func (o *offered) Transport() types.ImageTransport         { return offering{} }
func (o *offered) StringWithinTransport() string           { return o.top.Digest.String() }
func (o *offered) DockerReference() reference.Named        { return nil }
func (o *offered) PolicyConfigurationIdentity() string     { return "" }
func (o *offered) PolicyConfigurationNamespaces() []string { return nil }

func (o *offered) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return o, nil
}

func (o *offered) NewImage(ctx context.Context, sys *types.SystemContext) (types.ImageCloser, error) {
	return image.FromSource(ctx, sys, o)
}

var errReadOnly = errors.New("the image can only be read")

func (o *offered) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errReadOnly
}
func (o *offered) DeleteImage(context.Context, *types.SystemContext) error { return errReadOnly }

func (o *offered) Reference() types.ImageReference { return o }
func (o *offered) Close() error                    { return nil }
func (o *offered) HasThreadSafeGetBlob() bool      { return true }

func (o *offered) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) { return nil, nil }
func (o *offered) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}

func (o *offered) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil {
		instance = &o.top.Digest
	}
	return o.place.Manifest(ctx, instance.String())
}

func (o *offered) GetBlob(ctx context.Context, b types.BlobInfo, _ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	r, err := o.place.Blob(ctx, v1.Descriptor{MediaType: b.MediaType, Digest: b.Digest, Size: b.Size}, 0)
	return r, b.Size, err
}

type offering struct{}

func (offering) Name() string                                        { return Transport }
func (offering) ParseReference(string) (types.ImageReference, error) { return nil, errReadOnly }
func (offering) ValidatePolicyConfigurationScope(string) error       { return nil }
