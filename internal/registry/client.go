package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registriesd"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// Client sends requests to registries. It is safe for concurrent use.
type Client struct {
	o     Options
	sys   *types.SystemContext
	event func(transfer.Event)
	creds *credentialStore
	conf  string // the registries.conf in use, if it has the old format

	mu           sync.Mutex
	hosts        map[hostKey]*host
	repositories map[repositoryKey]*repository
	warned       map[string]bool

	placesOnce sync.Once
	places     *registriesd.Config
	placesErr  error
}

// Options configure a [Client].
type Options struct {
	Config Config
	// Retries is how often a request is repeated if the registry is busy or fails, or the connection breaks.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which fewer than 16 KiB arrive in this time; one minute by default.
	Stall time.Duration
	// Cache stores manifests and blobs; nil stores nothing.
	Cache *blobcache.Cache
	// Throttle limits requests and bytes, together with other clients that have it; nil limits nothing.
	Throttle *Throttle
	// Uploads keeps the upload sessions of large blobs, so that another process can go on with them; nil keeps none.
	Uploads Uploads
}

// NewClient returns a client. sys is the configuration of the machine; event receives retries and warnings.
func NewClient(o Options, sys *types.SystemContext, event func(transfer.Event)) *Client {
	r := &Client{
		o: o, sys: sys, event: event,
		hosts: map[hostKey]*host{}, repositories: map[repositoryKey]*repository{}, warned: map[string]bool{},
	}
	if old, err := o.Config.oldConf(); err == nil && old != nil { // an error has been reported by System
		r.conf = old.path
		r.warn(r.conf, transfer.Event{Kind: transfer.EventWarning, Err: fmt.Errorf(
			"%s is in version 1 of its format: its lists of blocked and insecure registries count; "+
				"containers-registries.conf(5) has version 2", old.path)})
	}
	r.creds = newCredentialStore(o.Config, sys,
		func(err error) { r.warn(err.Error(), transfer.Event{Kind: transfer.EventWarning, Err: err}) })
	return r
}

func (r *Client) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		h.client.CloseIdleConnections()
	}
}

// warn reports an event once for each text.
func (r *Client) warn(text string, e transfer.Event) {
	r.mu.Lock()
	tell := !r.warned[text] && len(r.warned) < maxWarnings
	if tell {
		r.warned[text] = true
	}
	r.mu.Unlock()
	if tell {
		r.event(e)
	}
}

// maxWarnings bounds the warnings, which registries can send in any number.
const maxWarnings = 100

// Open reads the manifest of a name, from the first mirror that has it or from the registry itself.
func (r *Client) Open(ctx context.Context, ref types.ImageReference, named reference.Named) (*Source, error) {
	sources, err := r.endpoints(named)
	if err != nil {
		return nil, classified{err}
	}
	var failed []string
	for i, from := range sources {
		last := i == len(sources)-1
		s, err := r.openAt(ctx, ref, from, last)
		if err == nil {
			return s, nil
		}
		if last || ctx.Err() != nil {
			if len(failed) > 0 {
				err = fmt.Errorf("%w (mirrors failed too: %s)", err, strings.Join(failed, "; "))
			}
			return nil, remoteError(err)
		}
		failed = append(failed, fmt.Sprintf("%s: %.300s", from.Reference, redact.Text(err.Error())))
	}
	return nil, classified{fmt.Errorf("no place to get %s from", named)}
}

// endpoints returns the places to read an image from, mirrors first (containers-registries.conf(5)).
func (r *Client) endpoints(named reference.Named) ([]sysregistriesv2.PullSource, error) {
	found, err := r.configured(named)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return []sysregistriesv2.PullSource{{Reference: named}}, nil
	}
	return found.PullSourcesFromReference(named)
}

// configured returns the entry of registries.conf for a repository; nil if there is none. A blocked registry is an
// error.
func (r *Client) configured(named reference.Named) (*sysregistriesv2.Registry, error) {
	found, err := sysregistriesv2.FindRegistry(r.sys, named.Name())
	if err != nil {
		var file *fs.PathError
		switch {
		case Homeless(err):
			return nil, nil
		case errors.As(err, &file):
			return nil, fmt.Errorf("registries.conf: %w", err)
		default:
			return nil, fmt.Errorf("registries.conf: %w: %w", fault.ErrInvalid, err)
		}
	}
	if found != nil && found.Blocked {
		where := cmp.Or(r.o.Config.RegistriesConf, r.conf)
		if where == "" {
			where = sysregistriesv2.ConfigurationSourceDescription(r.sys)
		}
		return nil, fmt.Errorf("registry %s is blocked in %s", found.Prefix, where)
	}
	return found, nil
}

func (r *Client) openAt(ctx context.Context, ref types.ImageReference, from sysregistriesv2.PullSource,
	last bool) (*Source, error) {
	repo, err := r.repository(from)
	if err != nil {
		return nil, err
	}
	s := &Source{ref: ref, repo: repo, cache: r.o.Cache, OpenedAt: from.Reference.String(), at: from.Reference}
	retries := r.o.Retries
	if !last {
		retries = 0 // the next endpoint is tried in place of another attempt
	}
	switch name := from.Reference.(type) {
	case reference.Canonical:
		s.text, s.kind, err = s.manifest(ctx, name.Digest().String(), retries)
	case reference.Tagged:
		s.text, s.kind, err = s.manifest(ctx, name.Tag(), retries)
	default:
		err = fmt.Errorf("%w: %s has neither a tag nor a digest", fault.ErrInvalid, name)
	}
	return s, err
}

// remoteError gives an error the class [fault.ErrRegistry] unless it is about content.
func remoteError(err error) error {
	for _, class := range []error{fault.ErrInvalid, fault.ErrLimit, fault.ErrIntegrity, fault.ErrRegistry} {
		if errors.Is(err, class) {
			return err
		}
	}
	return classified{err}
}
