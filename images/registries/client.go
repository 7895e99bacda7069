package registries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
)

// Uploads keeps where the uploads of large blobs continue, so that another process goes on with the bytes that the
// registry has; see [NewUploadStore].
type Uploads = registry.Uploads

// Options configure a [Client]. The zero value makes one attempt of each request, without limits.
type Options struct {
	// Registry is the configuration for registries. [Config.Env] completes it with that of the machine.
	Registry Config
	// Retries is how often a request is repeated if the registry is busy or fails, or the connection breaks. A transfer
	// that has made progress has all of them again.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which nothing moves for this time; two minutes by default.
	Stall time.Duration
	// Throttle limits requests and bytes, together with other clients that have it; nil limits nothing.
	Throttle *Throttle
	// Uploads keeps upload sessions for another process; nil keeps none.
	Uploads Uploads
	// Temp is the directory for temporary files; empty means the system's.
	Temp string
	// Events, unless nil, receives retries and warnings, from one goroutine at a time.
	Events func(store.Event)
}

// Client reads and writes the repositories of registries, as those that images are mirrored to: connections,
// credentials, tokens and limits are shared by all of them. Mirrors of registries.conf are for sources, so that none is
// used here. It is safe for concurrent use.
type Client struct {
	remote  *registry.Client
	scratch *layouts.Stage

	eventLock sync.Mutex
	events    func(store.Event)

	mu           sync.Mutex
	repositories map[string]*Repository // by their names
	hosts        map[string]*knownBlobs
}

// New returns a client. It reads the files that the options name, and sends no request. Close it after use.
func New(ctx context.Context, o Options) (_ *Client, err error) {
	if o.Retries < 0 {
		return nil, fmt.Errorf("%d retries: it cannot be tried less than once", o.Retries)
	}
	if o.Stall == 0 {
		o.Stall = 2 * time.Minute
	}
	temp := o.Temp
	if temp == "" {
		temp = os.TempDir()
	}
	// It is a stage, so that the next run removes it if this one is killed.
	scratch, err := layouts.NewStage(ctx, temp)
	if err != nil {
		return nil, err
	}
	sys, err := o.Registry.System(ctx, scratch.Path)
	if err != nil {
		return nil, errors.Join(err, scratch.Close())
	}
	r := &Client{scratch: scratch, events: o.Events, repositories: map[string]*Repository{},
		hosts: map[string]*knownBlobs{}}
	r.remote = registry.NewClient(registry.Options{Config: o.Registry, Retries: o.Retries,
		Backoff: o.Backoff, Stall: o.Stall, Throttle: o.Throttle, Uploads: o.Uploads}, sys, r.event)
	return r, nil
}

// Close ends idle connections and removes the client's files.
func (r *Client) Close() error {
	r.remote.Close()
	return r.scratch.Close()
}

func (r *Client) event(e store.Event) {
	if r.events == nil {
		return
	}
	r.eventLock.Lock()
	defer r.eventLock.Unlock()
	r.events(e)
}

// Repository returns the repository with a name HOST[:PORT]/PATH; no request is sent. The same name gives the same
// repository. The error is of the class [ErrInvalid] for a name with a tag or digest, without a host, or that is none,
// and of the class [ErrRegistry] for a registry that registries.conf blocks.
func (r *Client) Repository(name string) (*Repository, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil || !reference.IsNameOnly(named) || !strings.HasPrefix(name, reference.Domain(named)+"/") {
		return nil, fmt.Errorf("%w: %.300q is no repository HOST/PATH", fault.ErrInvalid, redact.Text(name))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.repositories[named.Name()]; ok {
		return known, nil
	}
	to, err := r.remote.WriteRepository(named)
	if err != nil {
		return nil, redact.Error(err)
	}
	host := reference.Domain(named)
	if r.hosts[host] == nil {
		r.hosts[host] = newKnownBlobs()
	}
	repository := &Repository{Repository: to, known: r.hosts[host]}
	r.repositories[named.Name()] = repository
	return repository, nil
}

// Repositories returns the paths of all repositories of a registry HOST[:PORT], in its order. The error is
// [ErrNoCatalog] if the registry does not tell them.
func (r *Client) Repositories(ctx context.Context, host string) ([]string, error) {
	found, err := r.remote.Repositories(ctx, host)
	return found, redact.Error(err)
}

// Ping asks the registry of HOST[:PORT][/PATH] whether it is one and accepts the credentials for that path.
func (r *Client) Ping(ctx context.Context, at string) error {
	return redact.Error(r.remote.Ping(ctx, at))
}
