package mirror

import (
	"context"
	"errors"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
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
	store.Reader
	top   v1.Descriptor
	close func() error
	// judged is the image as the policy of [Options.Images] sees it; nil if it demands nothing.
	judged *images.Source
}

// checkPolicy returns an error unless the policy accepts the image, or what is copied of the index.
func (o *opened) checkPolicy(ctx context.Context, platforms []v1.Platform) error {
	if o.judged == nil {
		return nil
	}
	return o.judged.CheckEntries(ctx, platforms)
}

// demands tells whether the policy accepts images of a name only with a signature, or not at all. Of such an image the
// source is judged before it is taken for there, whatever the target has and earlier runs remember.
func (r *run) demands(ctx context.Context, source imageset.Ref) (bool, error) {
	return r.o.Images.Demands(ctx, source.PullName())
}

// openJudged opens the source of an item, and asks the policy about all that is copied of it.
func (r *run) openJudged(ctx context.Context, i *item) (*opened, error) {
	from, err := r.from.open(ctx, i)
	if err == nil {
		if err = from.checkPolicy(ctx, i.platforms); err != nil {
			err = errors.Join(err, from.close())
		}
	}
	if err != nil {
		return nil, &originError{err}
	}
	return from, nil
}

// registryOrigin reads images from registries and layouts.
type registryOrigin struct{ client *images.Client }

func (o registryOrigin) open(ctx context.Context, i *item) (*opened, error) {
	source := i.source
	// A tag is resolved once, unless a policy may look at it: the manifest with the digest is in the cache.
	if resolved, ok := i.resolved.Load().(digest.Digest); ok {
		source.Digest = resolved
	}
	at, err := o.client.Open(ctx, source.PullName())
	if err != nil {
		return nil, err
	}
	if source.Digest == "" && source.InRegistry() {
		demanded, err := o.client.Demands(ctx, source.PullName())
		if err != nil {
			return nil, errors.Join(err, at.Close())
		}
		if !demanded {
			i.resolved.Store(at.Top.Digest)
		}
	}
	return &opened{at, at.Top, at.Close, at}, nil
}

func (o registryOrigin) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	return o.client.Head(ctx, i.source.PullName())
}

// recorded parses the name of a source that an earlier run has read, whatever its transport is.
func recorded(name string) (imageset.Ref, error) {
	transport, _, _ := strings.Cut(name, "://")
	return imageset.ParseRef(name, transport)
}

// target is where images go.
type target interface {
	repository(ref imageset.Ref) (repository, error)
}

// repository is a repository at the target.
type repository = store.Writer

// remoteTarget writes to a registry.
type remoteTarget struct{ run *run }

func (t remoteTarget) repository(ref imageset.Ref) (repository, error) {
	return t.run.o.Remote.Repository(ref.Repository())
}
