package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/internal/registriesd"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Client sends requests to registries. It is safe for concurrent use.
type Client struct {
	o       Options
	scratch *layouts.Stage
	sys     *types.SystemContext
	creds   *credentialStore
	conf    string // the registries.conf in use, if it has the old format

	mu           sync.Mutex
	hosts        map[hostKey]*host
	repositories map[repositoryKey]*repository
	warned       map[string]bool

	writtenLock sync.Mutex
	written     map[string]writtenRepository // by their names
	writtenMost int                          // how many there are before unused ones are forgotten
	eventLock   sync.Mutex

	// signaturePlaces returns what registries.d says, which is read once.
	signaturePlaces func() (*registriesd.Config, error)
}

// Options say how registries are reached, for reading and for writing: registries.Options. The zero value makes one
// attempt of each request, without credentials and limits.
type Options struct {
	// Registry is the configuration for registries. [Config.Env] completes it with that of the machine.
	Registry Config
	// Retries is how often a request is repeated if the registry is busy or fails, or the connection breaks. A transfer
	// that has made progress has all of them again.
	Retries int
	// Backoff is the first pause between two attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Stall ends an attempt in which fewer than 16 KiB arrive, or nothing is sent, in this time; by default one minute
	// where images are read, and two where they are written.
	Stall time.Duration
	// Cache stores the manifests and blobs of images that are opened by their names; nil stores nothing.
	Cache *blobcache.Cache
	// Throttle limits requests and bytes, together with other clients that have it; nil limits nothing.
	Throttle *Throttle
	// Uploads keeps the upload sessions of large blobs, so that another process can go on with them; nil keeps none.
	Uploads Uploads
	// Temp is the directory for temporary files that are not beside an output; empty means the system's.
	Temp string
	// Events, unless nil, receives retries, warnings and the steps of a copy, from one goroutine at a time.
	Events func(store.Event)
}

// Validate returns an error if the options contradict themselves. It reads no file.
func (o *Options) Validate() error {
	if o.Retries < 0 {
		return fmt.Errorf("%d retries: it cannot be tried less than once", o.Retries)
	}
	return nil
}

// New returns a client. It reads the files that the options name, and sends no request. Close it after use.
func New(ctx context.Context, o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// It is a stage, so that the next run removes it if this one is killed.
	scratch, err := layouts.NewStage(ctx, cmp.Or(o.Temp, os.TempDir()))
	if err != nil {
		return nil, err
	}
	sys, err := o.Registry.System(ctx, scratch.Path)
	if err != nil {
		return nil, errors.Join(err, scratch.Close())
	}
	r := &Client{
		o: o, scratch: scratch, sys: sys, written: map[string]writtenRepository{},
		hosts: map[hostKey]*host{}, repositories: map[repositoryKey]*repository{}, warned: map[string]bool{},
		signaturePlaces: sync.OnceValues(func() (*registriesd.Config, error) {
			return registriesd.Load(o.Registry.RegistriesDir)
		}),
	}
	if r.o.Backoff <= 0 {
		r.o.Backoff = time.Second
	}
	// System has read the file before, and has reported its errors.
	if old, err := o.Registry.oldConf(context.Background()); err == nil && old != nil {
		r.conf = old.path
		r.warn(r.conf, store.Event{Kind: store.EventWarning, Err: fmt.Errorf(
			"%s is in version 1 of its format: its lists of blocked and insecure registries count; "+
				"containers-registries.conf(5) has version 2", old.path)})
	}
	r.creds = newCredentialStore(o.Registry, sys,
		func(err error) { r.warn(err.Error(), store.Event{Kind: store.EventWarning, Err: err}) })
	return r, nil
}

// Scratch is a private directory that exists until the client is closed.
func (r *Client) Scratch() string { return r.scratch.Path }

// Close ends idle connections and removes the client's files.
func (r *Client) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		h.client.CloseIdleConnections()
	}
	return r.scratch.Close()
}

func (r *Client) event(e store.Event) {
	if r.o.Events == nil {
		return
	}
	r.eventLock.Lock()
	defer r.eventLock.Unlock()
	r.o.Events(e)
}

// warn reports an event once for each text.
func (r *Client) warn(text string, e store.Event) {
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
func (r *Client) Open(ctx context.Context, named reference.Named) (*Source, error) {
	var s *Source
	err := r.ask(ctx, named, func(from endpoint, last bool) (err error) {
		s, err = r.openAt(ctx, from, last)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// endpoint is a place to read an image from.
type endpoint struct {
	at   reference.Named // the image there
	repo *repository
}

// ask calls a function for the places to read an image from, mirrors first (containers-registries.conf(5)), until it
// succeeds. last tells that no other place is left. A place is judged by what registries.conf says of it, not of the
// name that was asked for: a blocked registry is read from its mirrors, and a blocked mirror is passed over.
func (r *Client) ask(ctx context.Context, named reference.Named, try func(from endpoint, last bool) error) error {
	places, blocked, err := r.endpoints(named)
	if err != nil {
		return Wrap(err)
	}
	if len(places) == 0 {
		return Wrap(errors.New(strings.Join(blocked, "; ")))
	}
	var failed []string
	for i, from := range places {
		last := i == len(places)-1
		if err = try(from, last); err == nil {
			return nil
		}
		if last || ctx.Err() != nil {
			break
		}
		failed = append(failed, fmt.Sprintf("%s: %.300s", from.at, redact.Text(err.Error())))
	}
	notes := blocked
	if len(failed) > 0 {
		notes = append(notes, "mirrors failed too: "+strings.Join(failed, "; "))
	}
	if len(notes) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.Join(notes, "; "))
	}
	return remoteError(err)
}

// endpoints returns the places to read an image from, and what there is to say of those that are blocked.
func (r *Client) endpoints(named reference.Named) (places []endpoint, blocked []string, err error) {
	found, err := r.configured(named)
	if err != nil {
		return nil, nil, err
	}
	sources := []sysregistriesv2.PullSource{{Reference: named}}
	if found != nil {
		if sources, err = found.PullSourcesFromReference(named); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range sources {
		repo, err := r.repository(s)
		var block *blockedError
		switch {
		case err == nil:
			places = append(places, endpoint{s.Reference, repo})
		case errors.As(err, &block):
			blocked = append(blocked, block.Error())
		default:
			return nil, nil, err
		}
	}
	return places, blocked, nil
}

// blockedError is the error of a registry that registries.conf blocks.
type blockedError struct{ registry, file string }

func (e *blockedError) Error() string {
	return fmt.Sprintf("registry %s is blocked in %s", e.registry, e.file)
}

// allowed returns the entry of registries.conf for a repository that is about to be asked; nil if there is none. The
// error is a [*blockedError] if it must not be asked.
func (r *Client) allowed(named reference.Named) (*sysregistriesv2.Registry, error) {
	found, err := r.configured(named)
	if err != nil || found == nil || !found.Blocked {
		return found, err
	}
	where := cmp.Or(r.o.Registry.RegistriesConf, r.conf)
	if where == "" {
		where = sysregistriesv2.ConfigurationSourceDescription(r.sys)
	}
	return nil, &blockedError{found.Prefix, where}
}

// configured returns the entry of registries.conf for a repository; nil if there is none.
func (r *Client) configured(named reference.Named) (*sysregistriesv2.Registry, error) {
	found, err := sysregistriesv2.FindRegistry(r.sys, named.Name())
	var file *fs.PathError
	switch {
	case err == nil:
		return found, nil
	case Homeless(err):
		return nil, nil
	case errors.As(err, &file):
		return nil, fmt.Errorf("registries.conf: %w", err)
	}
	return nil, fmt.Errorf("registries.conf: %w: %w", fault.ErrInvalid, err)
}

func (r *Client) openAt(ctx context.Context, from endpoint, last bool) (*Source, error) {
	s := &Source{Repository: &Repository{repo: from.repo, cache: r.o.Cache, source: true}, OpenedAt: from.at.String(),
		at: from.at}
	retries := r.o.Retries
	if !last {
		retries = 0 // the next endpoint is tried in place of another attempt
	}
	name, err := from.name()
	if err != nil {
		return nil, err
	}
	s.text, s.kind, err = from.repo.cachedManifest(ctx, r.o.Cache, name, manifestTypes, retries)
	return s, err
}

// name returns the digest or tag of the image.
func (e endpoint) name() (string, error) {
	switch at := e.at.(type) {
	case reference.Canonical:
		return at.Digest().String(), nil
	case reference.Tagged:
		return at.Tag(), nil
	}
	return "", fmt.Errorf("%w: %s has neither a tag nor a digest", fault.ErrInvalid, e.at)
}
