package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/registriesd"
	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// ClientOptions configure a [Client]. The zero value reads images for linux/amd64 without credentials, makes one
// attempt of each request, and enforces the system's policy.json if there is one.
type ClientOptions struct {
	registries.Options
	// Platform selects an image of an index; linux/amd64 by default. An image that is not in an index is not compared
	// with it.
	Platform v1.Platform
	// AnyPlatform selects the first image for Linux if an index has none for Platform.
	AnyPlatform bool
	// Timeout, unless zero, is the time for an image from Open until all of it has been read.
	Timeout time.Duration
	// Policy reads the policy.json to enforce: policy.Read of package images/policy, which has build tags of the
	// containers library. Without it, a policy.json that is there is an error.
	Policy trust.Reader
	// PolicyFile is the policy.json to enforce. By default it is that of the containers tools; if there is none, every
	// image is accepted.
	PolicyFile string
	// NoPolicy accepts every image, whatever the policy.json of the containers tools says. A program without Policy needs
	// it on machines that have one, such as those with podman.
	NoPolicy bool
	// RequireSigned refuses images that the policy accepts without verifying a signature, and every image if there is
	// no policy.
	RequireSigned bool
	// TrustedKeys, unless empty, require a signature by any one of them, attached or as a bundle, of every image in
	// place of the signatures that the policy requires. Attached signatures must be for the image's name, where it has
	// one. What the policy rejects stays rejected.
	TrustedKeys []signature.PublicKey
	// TrustedIdentities, unless nil, are trusted beside the TrustedKeys: a signature by one of either is required.
	TrustedIdentities signature.Identities
	// Transports are those that names can have; nil means those of [BuiltIn].
	Transports transport.Table
	// Lock pins names to digests; nil pins nothing.
	Lock *lockfile.Lock
	// Limits bound what Open reads of archives. [ExtractOptions] have limits of their own for the content of images.
	Limits Limits
}

// Client opens images of every transport for reading. It is safe for concurrent use.
type Client struct {
	o          ClientOptions
	transports transport.Table

	startLock sync.Mutex
	closed    bool
	policy    trust.Policy     // nil accepts everything
	remote    *registry.Client // nil until the first image is opened

	// lent has the places of [Client.Lend] by name.
	lent sync.Map
	// verified has the images whose signatures have been accepted, by name and digest.
	verified sync.Map
	// warned has the images, by the digests of their configurations, of which oddLayers has warned.
	warned    sync.Map
	eventLock sync.Mutex

	openedLock sync.Mutex
	opened     map[string]digest.Digest // see Opened
}

// NewClient returns a client. Files that the options name are read when the first image is opened.
func NewClient(o ClientOptions) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Client{o: o, transports: o.Transports}
	if c.transports == nil {
		c.transports = BuiltIn()
	}
	return c, nil
}

// Transports returns the transports that names can have; of a nil client those of [BuiltIn].
func (c *Client) Transports() transport.Table {
	if c == nil {
		return BuiltIn()
	}
	return c.transports
}

// prepare prepares the client before the first image is opened. Its errors are about files of the options and invalid
// policies.
func (c *Client) prepare(ctx context.Context) (err error) {
	c.startLock.Lock()
	defer c.startLock.Unlock()
	switch {
	case c.closed:
		return errClosed
	case c.remote != nil:
		return nil
	}
	with := c.o.Options
	with.Events = c.event
	remote, err := registry.New(ctx, with)
	if err != nil {
		return err
	}
	if !c.o.NoPolicy {
		if c.policy, err = c.o.readPolicy(ctx); err != nil {
			return errors.Join(err, remote.Close())
		}
	}
	c.remote = remote
	return nil
}

// readPolicy reads the policy.json of the options, by default that of the containers tools. It returns nil, which
// accepts every image, if there is none.
func (o *ClientOptions) readPolicy(ctx context.Context) (_ trust.Policy, err error) {
	file := o.PolicyFile
	if file == "" {
		if file, err = trust.Default(); file == "" || err != nil {
			return nil, err
		}
	}
	if o.Policy == nil {
		return nil, &trust.PolicyFileError{File: file,
			Err: errors.New("this program evaluates no signature policies: give images.ClientOptions the field " +
				"Policy: policy.Read, of package images/policy, or NoPolicy: true, which accepts every image")}
	}
	return o.Policy(ctx, file)
}

var errClosed = errors.New("the client is closed")

// Close ends idle connections and removes the client's files. Images that are open cannot be read after that. It may be
// called again.
func (c *Client) Close() error {
	c.startLock.Lock()
	defer c.startLock.Unlock()
	if c.closed || c.remote == nil {
		c.closed = true
		return nil
	}
	c.closed = true
	return c.remote.Close()
}

func (c *Client) event(e store.Event) {
	if c.o.Events == nil {
		return
	}
	c.eventLock.Lock()
	defer c.eventLock.Unlock()
	c.o.Events(e)
}

// oddLayers returns what warns of layers that the format of an image does not have, once for each image: one that was
// opened by a tag may be opened again by its digest.
func (c *Client) oddLayers(name string) func(v1.Manifest) {
	odd := func(l v1.Descriptor) bool { return strings.HasSuffix(l.MediaType, "zstd") }
	return func(m v1.Manifest) {
		if m.Config.MediaType == manifest.DockerV2Schema2ConfigMediaType && slices.ContainsFunc(m.Layers, odd) {
			if _, again := c.warned.LoadOrStore(m.Config.Digest, true); again {
				return
			}
			c.event(store.Event{Kind: store.EventWarning, Destination: redact.Text(name), Err: errors.New(
				"has layers with zstd, which Docker's format of manifests does not know: skopeo and others refuse the " +
					"image; have it built in the OCI format, or with gzip")})
		}
	}
}

// PullError is the error of an image that cannot be opened.
type PullError struct {
	Name string // as given, without credentials
	Err  error
}

func (e *PullError) Error() string {
	return fmt.Sprintf("failed to pull image %.300q: %v", e.Name, e.Err)
}
func (e *PullError) Unwrap() error { return e.Err }

// Object is the name.
func (e *PullError) Object() string { return e.Name }

// pullError wraps an error about an image.
func pullError(name string, err error) error {
	if err == nil {
		return nil
	}
	if configuration := aboutConfiguration(err); configuration != nil {
		return redact.Error(configuration)
	}
	return redact.Error(&PullError{redact.Text(name), err})
}

// aboutConfiguration returns the part of an error that is about an invalid policy or invalid files of registries.d, and
// not about an image; nil if it has no such part.
func aboutConfiguration(err error) error {
	var policy *trust.PolicyFileError
	var places *registriesd.Error
	switch {
	case errors.As(err, &policy):
		return policy
	case errors.As(err, &places):
		return places
	}
	return nil
}
