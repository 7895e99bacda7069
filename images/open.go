package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Open opens the image with a name: TRANSPORT:DETAILS with the transports of the client, or
// HOST/REPOSITORY[:TAG][@DIGEST] for a registry. A first part without a dot or port that is not "localhost" is no host:
// such a name is of docker.io. If there is a digest, the tag is ignored. A tag is resolved once, and everything else is
// read by digest. A name in the lock is opened by the digest there; other names are recorded in the lock.
//
// The policy of the client must accept the image: itself, or of an index that it does not accept as a whole each entry,
// and at least one. An index that no accepted manifest vouches for needs a signature of its own.
//
// Errors are a [*PullError] and of the classes [ErrInvalid], [ErrLimit], [ErrIntegrity], [ErrRegistry] and
// [ErrPolicy], or of the file system; [fs.ErrNotExist] if there is no such image. They name the image and contain
// no credentials. An image that the signature policy refuses is also a [*PolicyError]; one that cannot be
// used is of the class [ErrPolicy] too.
func (c *Client) Open(ctx context.Context, name string) (_ *Source, err error) {
	return c.accepted(ctx, name, nil, false)
}

// OpenPart is like [Client.Open] for those who use of an index only what is for some platforms ([store.Select]); none
// are all. Only that is judged, and an entry that the place lacks is not. Other entries are judged when they are read.
func (c *Client) OpenPart(ctx context.Context, name string, platforms []v1.Platform) (_ *Source, err error) {
	return c.accepted(ctx, name, platforms, true)
}

// Image opens the image of a name for a platform; by default for that of the options, or for linux/amd64. An image that
// is not in an index is not compared with it. The policy must accept the image, or an index that it is in. It is closed
// with [Image.Close]. Errors are those of [Client.Open].
func (c *Client) Image(ctx context.Context, name string, p v1.Platform) (*Image, error) {
	return c.oneImage(ctx, name, func(ctx context.Context, o *candidate) (*Image, error) { return o.image(ctx, p) })
}

// Choose is like [Client.Image] for the image that a function chooses of an index, and of an index in it.
func (c *Client) Choose(ctx context.Context, name string, choose Chooser) (*Image, error) {
	return c.oneImage(ctx, name, func(ctx context.Context, o *candidate) (*Image, error) { return o.choose(ctx, choose) })
}

func (c *Client) oneImage(ctx context.Context, name string,
	of func(context.Context, *candidate) (*Image, error)) (_ *Image, err error) {
	o, err := c.open(ctx, name)
	if err != nil {
		return nil, pullError(name, err)
	}
	img, err := of(ctx, o)
	return img, o.closeAfter(err)
}

func (c *Client) accepted(ctx context.Context, name string, platforms []v1.Platform, sparse bool) (_ *Source, err error) {
	defer func() { err = pullError(name, err) }()
	o, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	s, err := o.accept(ctx, platforms, sparse)
	return s, o.closeAfter(err)
}

// closeAfter closes the place after an error.
func (o *candidate) closeAfter(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, closePlace(o.place))
}

// open opens the place of a name, and asks no policy.
func (c *Client) open(ctx context.Context, name string) (*candidate, error) {
	var deadline time.Time
	if c.o.Timeout > 0 {
		deadline = time.Now().Add(c.o.Timeout)
	}
	ctx, cancel := withDeadline(ctx, deadline, c.o.Timeout)
	defer cancel()
	asked, err := c.transports.Source(name)
	if err != nil {
		return nil, err
	}
	at, err := c.openNamed(ctx, asked, name)
	if err != nil {
		return nil, err
	}
	return c.openAt(ctx, asked, name, at, deadline)
}

// openAt reads the index or manifest of a place, which is closed after an error.
func (c *Client) openAt(ctx context.Context, asked transport.Source, name string, at *transport.Place,
	deadline time.Time) (*candidate, error) {
	o, err := openTop(ctx, at)
	if err != nil {
		return nil, err
	}
	o.client, o.asked, o.given, o.deadline, o.noted = c, asked, name, deadline, c.oddLayers(name)
	if named := asked.Named(); named != nil {
		o.repository = named.Name()
	}
	o.showManifest(o.text)
	return o, nil
}

// At opens an image at a place that is open, such as an image that was assembled and is not written yet. No policy and
// no lock is asked. The place stays open when the source is closed.
func At(ctx context.Context, place store.Reader, top v1.Descriptor) (*Source, error) {
	o, err := openTop(ctx, &transport.Place{Reader: place, Top: top})
	if err != nil {
		return nil, err
	}
	return o.accept(ctx, nil, false)
}

// At opens an image that was carried to another place, such as an archive, as [Client.OpenPart] opens it where its name
// says: the policy is asked under the name, about the signatures that the place has for the image, whatever
// registries.d says. The place stays open when the source is closed.
//
// Errors are those of [Client.Open].
func (c *Client) At(ctx context.Context, name string, place store.Reader, top v1.Descriptor,
	platforms []v1.Platform) (_ *Source, err error) {
	defer func() { err = pullError(name, err) }()
	asked, err := c.transports.Source(name)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	at := &transport.Place{Reader: place, Top: top, Signatures: attachedSignatures(place)}
	if asked.Transport == transport.Docker {
		at.Named = asked.Repository.String()
	}
	o, err := c.openAt(ctx, asked, name, at, time.Time{})
	if err != nil {
		return nil, err
	}
	return o.accept(ctx, platforms, true)
}

// openNamed opens the place of a name, by the digest in the lock if it has one.
func (c *Client) openNamed(ctx context.Context, asked transport.Source, name string) (*transport.Place, error) {
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	named := asked.Repository
	if asked.Transport == transport.Docker {
		var err error
		if asked, err = c.pinned(asked, name); err != nil {
			return nil, err
		}
	}
	at, err := c.openPlace(ctx, asked)
	if err == nil && named != nil {
		at.Named = named.String() // the name that was asked for
	}
	return at, err
}

// pinned replaces the tag of a name by the digest in the lock, if that has one.
func (c *Client) pinned(asked transport.Source, name string) (_ transport.Source, err error) {
	if d, locked := c.o.Lock.Digest(name); locked {
		asked.Repository, err = pin(asked.Repository, d)
	}
	return asked, err
}

// openPlace opens the place of a name. The error is also [fs.ErrNotExist] if there is no such image.
func (c *Client) openPlace(ctx context.Context, asked transport.Source) (at *transport.Place, err error) {
	defer func() {
		var status *registries.StatusError
		if errors.As(err, &status) && status.Status == http.StatusNotFound || errors.Is(err, fault.ErrInvalid) {
			err = notThere{err}
		}
	}()
	if lent, ok := c.lent.Load(nameKey(asked)); ok {
		place := lent.(transport.Place)
		return &place, nil
	}
	if row := c.transports.Row(asked.Transport); row.Parse != nil {
		if row.Open == nil {
			return nil, unsupported(row)
		}
		return row.Open(ctx, asked.Path, asked.Name,
			transport.Options{Limits: c.o.Limits.WithDefaults(), Temp: c.o.Temp, Private: c.remote.Scratch()})
	}
	src, err := c.remote.Open(ctx, asked.Repository)
	if err != nil {
		return nil, err
	}
	return &transport.Place{Reader: src, Top: src.Top(), OpenedAt: src.OpenedAt, Signatures: src.Signatures,
		SignaturesAt: src.SignaturesAt}, nil
}

// notThere is the error of a name that stands for no image.
type notThere struct{ error }

func (e notThere) Unwrap() []error { return []error{fs.ErrNotExist, e.error} }

// pin replaces the tag of a name by a digest. A name with another digest is an error.
func pin(named reference.Named, d digest.Digest) (reference.Named, error) {
	if canonical, ok := named.(reference.Canonical); ok && canonical.Digest() != d {
		return nil, fmt.Errorf("%w: the lock has %s for %s", fault.ErrIntegrity, d, named)
	}
	return reference.WithDigest(reference.TrimNamed(named), d)
}

// withDeadline returns a context that ends at a deadline, with an error that has the time that was allowed.
func withDeadline(ctx context.Context, deadline time.Time,
	allowed time.Duration) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	// A timeout counts as a failure of the registry, whichever step it interrupts.
	return context.WithDeadlineCause(ctx, deadline,
		registry.Wrap(fmt.Errorf("not done within %v: %w", allowed, context.DeadlineExceeded)))
}

// UnverifiedDigest returns the digest that a name refers to now, without use of the lock and of the policy. It is empty if there
// is no such image. Errors are those of [Client.Open].
func (c *Client) UnverifiedDigest(ctx context.Context, name string) (_ digest.Digest, err error) {
	defer func() { err = pullError(name, err) }()
	asked, err := c.transports.Source(name)
	if err != nil {
		return "", err
	}
	if err := c.prepare(ctx); err != nil {
		return "", err
	}
	at, err := c.openPlace(ctx, asked)
	if err == nil {
		o, oerr := openTop(ctx, at)
		if err = oerr; err == nil {
			return o.digest, closePlace(at)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return "", err
}

// UnverifiedHead returns the descriptor of an image in a registry, or in the mirror that has it, as a rule by a request without a
// body. It asks neither the policy nor the cache. The error is [fs.ErrNotExist] if there is none, and [ErrInvalid] for
// other transports.
func (c *Client) UnverifiedHead(ctx context.Context, name string) (_ v1.Descriptor, err error) {
	defer func() { err = pullError(name, err) }()
	asked, err := c.transports.Source(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if asked.Transport != transport.Docker {
		return v1.Descriptor{}, fmt.Errorf("%w: %s is not in a registry", fault.ErrInvalid, name)
	}
	if err := c.prepare(ctx); err != nil {
		return v1.Descriptor{}, err
	}
	if asked, err = c.pinned(asked, name); err != nil {
		return v1.Descriptor{}, err
	}
	return c.remote.Head(ctx, asked.Repository)
}

// UnverifiedTags lists the tags of a repository HOST/REPOSITORY, in the registry or the mirror that has it. The policy is asked when
// an image of one is opened. The error is [fs.ErrNotExist] if there is no such repository.
func (c *Client) UnverifiedTags(ctx context.Context, repository string) (_ []string, err error) {
	defer func() { err = pullError(repository, err) }()
	asked, err := c.transports.Source(repository)
	if err != nil {
		return nil, err
	}
	if asked.Transport != transport.Docker {
		return nil, fmt.Errorf("%w: %s is not in a registry", fault.ErrInvalid, repository)
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	return c.remote.Tags(ctx, asked.Repository)
}

// Opened returns the images that the client has opened so far, by their names as they were given, without "docker://":
// the digest of the index or manifest that each was opened by. It is what a run depended on, with or without a lock.
func (c *Client) Opened() map[string]digest.Digest {
	c.openedLock.Lock()
	defer c.openedLock.Unlock()
	return maps.Clone(c.opened)
}

// record notes the digest that a name was opened by, in the lock too.
func (c *Client) record(name string, d digest.Digest) error {
	if err := c.o.Lock.Record(name, d); err != nil {
		return err
	}
	c.openedLock.Lock()
	defer c.openedLock.Unlock()
	if c.opened == nil {
		c.opened = map[string]digest.Digest{}
	}
	c.opened[lockfile.Name(name)] = d
	return nil
}
