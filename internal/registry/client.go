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
	"github.com/operator-bindery/bindery/internal/transfer"
)

// Client speaks to registries, in the distribution protocol: where credentials go, what
// a redirect may do and how often something is tried again are decided here. What is configured on the machine -
// registries.conf, certificates - is read by the containers library.
type Client struct {
	o     Options
	sys   *types.SystemContext
	event func(transfer.Event)
	creds *credentialStore
	conf  string // the registries.conf that counts, if it is in an old format

	mu           sync.Mutex
	hosts        map[hostKey]*host
	repositories map[repositoryKey]*repository
	warned       map[string]bool
}

// Options say how registries are asked.
type Options struct {
	Config Config
	// Retries is how many more times a request is made when the registry is busy or failing or the connection breaks.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which less than 16 KiB arrive for so long; one minute by default.
	Stall time.Duration
	// Cache keeps what registries gave; nil keeps nothing.
	Cache *blobcache.Cache
}

// NewClient returns a client of registries. What is configured on the machine is in sys; event receives retries and
// warnings.
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
	r.creds = newCredentialStore(o.Config, sys, func(err error) { r.warn(err.Error(), transfer.Event{Kind: transfer.EventWarning, Err: err}) })
	return r
}

func (r *Client) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		h.client.CloseIdleConnections()
	}
}

// warn tells of something once.
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

// maxWarnings is how many different warnings are passed on: registries send them as they like.
const maxWarnings = 100

// Open gets the manifest that a name stands for, from the first mirror that has it or from the registry itself.
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

// endpoints are the places an image can be had from, mirrors first (containers-registries.conf(5)).
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

// configured is what registries.conf says of a repository; nil if it says nothing. A registry that it blocks is an error.
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

func (r *Client) openAt(ctx context.Context, ref types.ImageReference, from sysregistriesv2.PullSource, last bool) (*Source, error) {
	repo, err := r.repository(from)
	if err != nil {
		return nil, err
	}
	s := &Source{ref: ref, repo: repo, cache: r.o.Cache, OpenedAt: from.Reference.String()}
	retries := r.o.Retries
	if !last {
		retries = 0 // the next place is as good as another attempt
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

// remoteError gives an error the class [ErrRegistry] unless it is about content.
func remoteError(err error) error {
	for _, class := range []error{fault.ErrInvalid, fault.ErrLimit, fault.ErrIntegrity, fault.ErrRegistry} {
		if errors.Is(err, class) {
			return err
		}
	}
	return classified{err}
}
