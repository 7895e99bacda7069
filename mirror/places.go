package mirror

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// origin is where images come from.
type origin interface {
	// open opens the image of an item, if the policy accepts all that is copied of it. The caller closes it.
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
	// carrier, unless nil, has what is attached to an image that is built, and sign is attached to it, too.
	carrier store.Reader
	sign    []store.Attachment
}

// policyDemands tells whether the policy accepts images of a name only with a signature, or not at all. Of such an
// image the source is judged before it is taken for there, whatever the target has and earlier runs remember.
func (o *Options) policyDemands(ctx context.Context, source imageset.Ref) (bool, error) {
	return o.Images.Demands(ctx, source.PullName())
}

// openSource opens the image of an item. Errors are a [store.SourceError].
func openSource(ctx context.Context, from origin, i *item) (*opened, error) {
	at, err := from.open(ctx, i)
	if err != nil {
		return nil, &store.SourceError{Err: err, Opening: true}
	}
	return at, nil
}

// registryOrigin reads images from registries and layouts.
type registryOrigin struct{ client *images.Client }

func (o registryOrigin) open(ctx context.Context, i *item) (*opened, error) {
	source := i.source
	// A tag is resolved once, unless a policy may look at it: the manifest with the digest is in the cache.
	if resolved, ok := i.resolved.Load().(digest.Digest); ok {
		source.Digest = resolved
	}
	at, err := o.client.OpenPart(ctx, source.PullName(), i.platforms)
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
	return &opened{Reader: at, top: at.Top, close: at.Close, judged: at}, nil
}

func (o registryOrigin) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	return o.client.UnverifiedHead(ctx, i.source.PullName())
}

// target is where images go.
type target interface {
	repository(ref imageset.Ref) (store.Writer, error)
}

// remoteTarget writes to a registry.
type remoteTarget struct{ client *registries.Client }

func (t remoteTarget) repository(ref imageset.Ref) (store.Writer, error) {
	return t.client.Repository(ref.Repository())
}

// mediumTarget writes to an archive.
type mediumTarget struct{ writer *medium.Writer }

func (t mediumTarget) repository(ref imageset.Ref) (store.Writer, error) {
	return t.writer.Repository(ref.Path), nil
}

// places are the two ends of a run.
type places struct {
	from origin
	// to is nil in a dry run to an archive.
	to target
	// input is the archive that images come from; nil in other directions.
	input *archive
	// output is the archive that is written; nil in other directions, and before it is opened.
	output *medium.Writer
	// other is what the target of an archive is known to have; nil in other directions, and before it is read.
	other *otherSide
}

// contentOf returns the digest that the source of an image has; empty if that cannot be found out.
func contentOf(ctx context.Context, from origin, i *item) digest.Digest {
	if i.source.Digest != "" {
		return i.source.Digest
	}
	if top, err := from.head(ctx, i); err == nil {
		return top.Digest
	}
	at, err := from.open(ctx, i) // a layout
	if err != nil {
		return ""
	}
	if err := at.close(); err != nil {
		return ""
	}
	return at.top.Digest
}

// useDigestTag gives an image the tag of its digest, as the tag that it is named by is that of another image.
func useDigestTag(report *report, i *item) {
	was, at := i.destination.Name(), i.destination
	at.Tag = imageset.DigestTag(i.source.Digest)
	i.setDestination(at)
	report.problem(filter.Warning, i.name(), "", "at the destination it is %s: the tag of %s is that of another image",
		i.destination.Name(), was)
}
