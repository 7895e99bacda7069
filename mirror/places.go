package mirror

import (
	"context"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// origin is where images come from.
type origin interface {
	// open opens the image of an item. The caller closes it.
	open(ctx context.Context, i *item) (*opened, error)
	// head returns the descriptor that the image of an item has now.
	head(ctx context.Context, i *item) (v1.Descriptor, error)
}

// opened is an image that can be read.
type opened struct {
	referrers.Reader
	top   v1.Descriptor
	close func() error
}

// registryOrigin reads images from registries and layouts.
type registryOrigin struct{ client *images.Client }

func (o registryOrigin) open(ctx context.Context, i *item) (*opened, error) {
	at, err := o.client.Source(ctx, pullName(i.source))
	if err != nil {
		return nil, err
	}
	return &opened{at.Reader, at.Image.Top, at.Close}, nil
}

func (o registryOrigin) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	return o.client.Head(ctx, pullName(i.source))
}

// pullName is the name by which an image is read: by its digest if it has one.
func pullName(r imageset.Ref) string {
	switch {
	case r.Transport == imageset.OCI:
		return imageset.LayoutName(r)
	case r.Digest != "":
		r.Tag = ""
	}
	return "docker://" + r.Name()
}

// target is where images go.
type target interface {
	repository(ref imageset.Ref) (repository, error)
}

// repository is a repository at the target.
type repository interface {
	referrers.Writer
	// Head returns the descriptor of a manifest; the error is [fs.ErrNotExist] if there is none.
	Head(ctx context.Context, name string) (v1.Descriptor, error)
}

// remoteTarget writes to a registry.
type remoteTarget struct{ run *run }

func (t remoteTarget) repository(ref imageset.Ref) (repository, error) {
	at, err := t.run.o.Remote.Repository(ref.Repository())
	if err == nil && len(t.run.elsewhere) > 0 {
		at.MountFrom(t.run.otherPlaces)
	}
	return at, err
}
