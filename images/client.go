package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// ClientOptions say how a [Client] gets images. The zero value reads images for linux/amd64 without credentials, tries
// everything once, and enforces the system's policy.json where there is one.
type ClientOptions struct {
	// Registry says how registries are reached. Fill it with [Registry.Env] to use what is configured on the machine.
	Registry Registry
	// Platform is chosen from an index; linux/amd64 by default. An image that is not in an index is taken as it is.
	Platform v1.Platform
	// AnyPlatform takes, where an index has no image for Platform, its first one for Linux.
	AnyPlatform bool
	// Retries is how many more times a request is made when the registry is busy or failing or the connection breaks.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which as good as nothing (16 KiB) arrives for so long; one minute by default.
	Stall time.Duration
	// Timeout, unless zero, is how long an image may take from Open until all of it has been read.
	Timeout time.Duration
	// PolicyFile is a policy.json that is enforced. If it is empty the one in the place where the containers tools look for
	// it is, and if there is none every image is accepted.
	PolicyFile string
	// Cache keeps what registries gave; nil keeps nothing.
	Cache *blobcache.Cache
	// Lock pins names to digests; nil pins nothing.
	Lock *Lock
	// Limits bound what Open reads of archives. [ExtractOptions] have their own for the content of images.
	Limits limit.Limits
	// Temp is where temporary files go; empty means the system's place for them.
	Temp string
	// Events, unless nil, is told of retries and warnings. It is called by one goroutine at a time.
	Events func(transfer.Event)
}

// Client opens images of every transport for reading. It is safe for concurrent use.
type Client struct {
	o ClientOptions

	startLock sync.Mutex
	closed    bool
	sys       *types.SystemContext // nil until the first image is opened
	scratch   *layouts.Stage
	policy    *signature.PolicyContext // nil accepts everything
	remote    *registry.Client

	policyLock sync.Mutex
	eventLock  sync.Mutex
}

// NewClient returns a client. It looks at the options only: files that they name are read, and directories are made,
// when the first image is opened.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Retries < 0 {
		return nil, fmt.Errorf("%d retries: it cannot be tried less than once", o.Retries)
	}
	return &Client{o: o}, nil
}

// start does once what has to be done before an image can be opened. Its errors are about files that the options name,
// or policies that cannot be understood.
func (c *Client) start(ctx context.Context) (err error) {
	c.startLock.Lock()
	defer c.startLock.Unlock()
	switch {
	case c.closed:
		return errClosed
	case c.sys != nil:
		return nil
	}
	temp := c.o.Temp
	if temp == "" {
		temp = os.TempDir()
	}
	// A stage, because the next run removes what a killed one has left of it.
	scratch, err := layouts.NewStage(ctx, temp)
	if err != nil {
		return err
	}
	sys, err := c.o.Registry.System(scratch.Path)
	if err != nil {
		return errors.Join(err, scratch.Close())
	}
	if c.policy, err = sourcePolicy(c.o.PolicyFile); err != nil {
		return errors.Join(err, scratch.Close())
	}
	c.scratch, c.sys = scratch, sys
	c.remote = registry.NewClient(registry.Options{
		Config: registry.Config(c.o.Registry), Retries: c.o.Retries, Backoff: c.o.Backoff, Stall: c.o.Stall, Cache: c.o.Cache,
	}, c.sys, c.event)
	return nil
}

var errClosed = errors.New("the client is closed")

// Close ends idle connections and removes the client's files. Images that are still open cannot be read any more. Closing
// again does nothing.
func (c *Client) Close() error {
	c.startLock.Lock()
	defer c.startLock.Unlock()
	if c.closed || c.sys == nil {
		c.closed = true
		return nil
	}
	c.closed = true
	c.remote.Close()
	var err error
	if c.policy != nil {
		err = c.policy.Destroy()
	}
	return errors.Join(err, c.scratch.Close())
}

func (c *Client) event(e transfer.Event) {
	if c.o.Events == nil {
		return
	}
	c.eventLock.Lock()
	defer c.eventLock.Unlock()
	c.o.Events(e)
}

// PullError says which image could not be opened.
type PullError struct {
	Name string // as it was given, without credentials
	Err  error
}

func (e *PullError) Error() string {
	return fmt.Sprintf("failed to pull image %.300q: %v", e.Name, e.Err)
}
func (e *PullError) Unwrap() error { return e.Err }

// Open opens the image with a name of the form that [ParseSource] reads. A tag is resolved once: everything after that
// is got by digest. A name that the lock knows is got by its digest, and a name that it does not know is recorded there.
//
// Errors are a [*PullError] and of the classes [ErrInvalid], [ErrLimit], [ErrIntegrity], [ErrRegistry] and [ErrPolicy], or
// come from the file system. They name the image and show no credentials.
func (c *Client) Open(ctx context.Context, name string) (_ *Image, err error) {
	return c.open(ctx, name, OpenOptions{Platform: c.o.Platform, AnyPlatform: c.o.AnyPlatform})
}

// OpenPlatform is Open for a platform other than the client's.
func (c *Client) OpenPlatform(ctx context.Context, name string, p v1.Platform) (*Image, error) {
	return c.open(ctx, name, OpenOptions{Platform: p})
}

func (c *Client) open(ctx context.Context, name string, o OpenOptions) (_ *Image, err error) {
	defer func() {
		if err != nil {
			err = redact.Error(&PullError{redact.Text(name), err})
		}
	}()
	var deadline time.Time
	if c.o.Timeout > 0 {
		deadline = time.Now().Add(c.o.Timeout)
	}
	ctx, cancel := withDeadline(ctx, deadline, c.o.Timeout)
	defer cancel()
	n, src, err := c.openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	o.cache = c.cacheFor(n)
	img, err := OpenSource(ctx, src, o)
	if err != nil {
		return nil, err
	}
	img.Name, img.deadline, img.timeout = name, deadline, c.o.Timeout
	if r, ok := src.(*registry.Source); ok {
		img.Source, img.repository = r.OpenedAt, n.repository.Name()
	}
	if err := c.admit(ctx, n, name, img.Top); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return img, nil
}

// openSource opens the source for a name, by its digest where the lock has one.
func (c *Client) openSource(ctx context.Context, name string) (sourceName, types.ImageSource, error) {
	n, err := parseSourceName(name)
	if err != nil {
		return n, nil, err
	}
	if err := c.start(ctx); err != nil {
		return n, nil, err
	}
	if pinned, locked := c.o.Lock.Digest(name); locked && n.transport == Docker {
		if n.repository, err = pin(n.repository, pinned); err != nil {
			return n, nil, err
		}
	}
	src, err := c.source(ctx, n)
	return n, src, err
}

// cacheFor is the blob cache, where it is of use: what is on this machine needs none.
func (c *Client) cacheFor(n sourceName) *blobcache.Cache {
	if n.transport != Docker {
		return nil
	}
	return c.o.Cache
}

// admit checks what a name stands for against the policy and the lock.
func (c *Client) admit(ctx context.Context, n sourceName, name string, top digest.Digest) error {
	if err := c.allowed(ctx, n, top); err != nil {
		return err
	}
	return c.o.Lock.Record(name, top)
}

// source opens a source of this package for a name.
func (c *Client) source(ctx context.Context, n sourceName) (types.ImageSource, error) {
	if n.transport == Docker {
		ref, err := n.reference()
		if err != nil {
			return nil, err
		}
		return c.remote.Open(ctx, ref, n.repository)
	}
	temp := c.o.Temp
	if n.transport == Store {
		temp = c.scratch.Path // the library takes another place than $TMPDIR
	}
	return openHere(ctx, n, c.o.Limits.WithDefaults(), temp)
}

// pin gives a repository's name a digest in place of its tag. A name that has another digest already is in conflict.
func pin(named reference.Named, d digest.Digest) (reference.Named, error) {
	if canonical, ok := named.(reference.Canonical); ok && canonical.Digest() != d {
		return nil, fmt.Errorf("%w: the lock has %s for %s", fault.ErrIntegrity, d, named)
	}
	return reference.WithDigest(reference.TrimNamed(named), d)
}

// withDeadline is a context that ends at a deadline with an error that says what was allowed.
func withDeadline(ctx context.Context, deadline time.Time, allowed time.Duration) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	// Where it ends is chance; what it was waiting for is the registry.
	return context.WithDeadlineCause(ctx, deadline, registry.Wrap(fmt.Errorf("not done within %v: %w", allowed, context.DeadlineExceeded)))
}
