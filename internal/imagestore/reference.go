//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"context"
	"errors"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	transport "go.podman.io/image/v5/storage"
	"go.podman.io/image/v5/types"
)

// lazyReference is a reference to an image in a store that is opened when it is needed. The library's own references
// are of open stores.
type lazyReference struct{ n Name }

// NewReference returns a reference to an image.
func NewReference(n Name) (types.ImageReference, error) {
	if _, err := parseSpec(n.Place); err != nil {
		return nil, err
	}
	return &lazyReference{n}, nil
}

func (r *lazyReference) Transport() types.ImageTransport { return transport.Transport }

func (r *lazyReference) StringWithinTransport() string {
	if r.n.Place == "" {
		return r.n.Image
	}
	return "[" + r.n.Place + "]" + r.n.Image
}

func (r *lazyReference) DockerReference() reference.Named {
	named, err := reference.ParseNormalizedNamed(r.n.Image)
	if err != nil {
		return nil // an ID
	}
	return reference.TagNameOnly(named)
}

// inStore calls a function with the library's reference.
func (r *lazyReference) inStore(ctx context.Context, f func(types.ImageReference)) error {
	store, err := Open(ctx, r.n.Place)
	if err != nil {
		return err
	}
	ref, err := transport.Transport.ParseStoreReference(store.Store, r.n.Image)
	if err == nil {
		f(ref)
	}
	return errors.Join(err, store.Release())
}

// PolicyConfigurationIdentity returns the name of the image in policies. It is empty if the store cannot be opened:
// that is an error when the image is read.
func (r *lazyReference) PolicyConfigurationIdentity() (id string) {
	if r.inStore(context.Background(),
		func(ref types.ImageReference) { id = ref.PolicyConfigurationIdentity() }) != nil {
		return ""
	}
	return id
}

// PolicyConfigurationNamespaces returns the more general names of the image in policies.
func (r *lazyReference) PolicyConfigurationNamespaces() (names []string) {
	if r.inStore(context.Background(),
		func(ref types.ImageReference) { names = ref.PolicyConfigurationNamespaces() }) != nil {
		return nil
	}
	return names
}

// NewImageSource opens the library's source, which has signatures.
func (r *lazyReference) NewImageSource(ctx context.Context, sys *types.SystemContext) (types.ImageSource, error) {
	store, err := Open(ctx, r.n.Place)
	if err != nil {
		return nil, err
	}
	temp := ""
	if sys != nil {
		temp = sys.BigFilesTemporaryDir
	}
	src, err := r.n.findStored(ctx, store, temp)
	if err != nil {
		return nil, errors.Join(err, store.Release())
	}
	return &heldSource{src, store}, nil
}

func (r *lazyReference) NewImage(ctx context.Context, sys *types.SystemContext) (types.ImageCloser, error) {
	src, err := r.NewImageSource(ctx, sys)
	if err != nil {
		return nil, err
	}
	return image.FromSource(ctx, sys, src)
}

var errReadOnly = errors.New("images are written into stores by Copy")

func (r *lazyReference) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errReadOnly
}

func (r *lazyReference) DeleteImage(context.Context, *types.SystemContext) error { return errReadOnly }

// heldSource releases the store when the source is closed.
type heldSource struct {
	types.ImageSource
	store *Store
}

func (s *heldSource) Close() error { return errors.Join(s.ImageSource.Close(), s.store.Release()) }
