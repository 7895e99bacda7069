package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/registry"
)

// copier is one run of [Copy]: the places that are written to, and which destination is at which of them.
type copier struct {
	from    store.Reader
	top     v1.Descriptor
	o       CopyOptions
	sys     *types.SystemContext
	scratch *Workspace
	remote  *Remote // nil until a destination is in a registry
	places  []*writtenPlace
	edges   []*edge
	events  sync.Mutex
}

// writtenPlace is a repository or a layout that gets the image under one or several names.
type writtenPlace struct {
	key   string
	to    store.Writer
	dests []Destination
	names []store.Name
}

func newCopier(ctx context.Context, from store.Reader, top v1.Descriptor, dests []Destination,
	o CopyOptions) (*copier, error) {
	w, err := NewWorkspace(ctx, dests, o.Temp)
	if err != nil {
		return nil, err
	}
	sys, err := o.Registry.System(ctx, w.Dir())
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &copier{from: from, top: top, o: o, sys: sys, scratch: w}, nil
}

// close removes what is staged and was not put in its place, and what the run has opened.
func (c *copier) close(ctx context.Context) (err error) {
	for _, e := range c.edges {
		if e.out != nil {
			err = errors.Join(err, e.out.Discard())
		}
	}
	for _, p := range c.places {
		if p.dests[0].local() {
			err = errors.Join(err, p.to.Discard())
		}
	}
	if c.remote != nil && c.o.Checked == nil {
		err = errors.Join(err, c.remote.Close())
	}
	return errors.Join(err, c.scratch.Close())
}

// open adds a destination: to the places, where those in one repository or layout are one, or to those at the edge.
func (c *copier) open(ctx context.Context, d Destination) error {
	row := c.o.transports().row(d.Transport)
	switch {
	case row == nil:
		return fmt.Errorf("%w: unknown transport %q", fault.ErrInvalid, d.Transport)
	case row.Parse == nil:
		return c.openRepository(ctx, d)
	case row.Write != nil:
		return c.openPlace(ctx, d, row)
	}
	c.edges = append(c.edges, &edge{d: d})
	return nil
}

// place returns a place that is open; nil if it is not.
func (c *copier) place(key string) *writtenPlace {
	for _, p := range c.places {
		if p.key == key {
			return p
		}
	}
	return nil
}

func (c *copier) openRepository(ctx context.Context, d Destination) error {
	named, err := d.named()
	if err != nil {
		return err
	}
	if canonical, ok := named.(reference.Canonical); ok && canonical.Digest() != c.top.Digest {
		return registry.Wrap(fmt.Errorf("%w: the image has the digest %s", fault.ErrIntegrity, c.top.Digest))
	}
	if c.remote == nil {
		if c.remote, err = c.o.remote(ctx, c.event); err != nil {
			return err
		}
	}
	p := c.place(named.Name())
	if p == nil {
		to, err := c.remote.Repository(named.Name())
		if err != nil {
			return err
		}
		p = &writtenPlace{key: named.Name(), to: to}
		c.places = append(c.places, p)
	}
	n := store.Name{Text: d.String(), Image: named.String()}
	if tagged, ok := named.(reference.NamedTagged); ok {
		n.Tag = tagged.Tag()
	}
	p.add(d, n)
	return nil
}

// openPlace opens a place of a transport that is written by its row.
func (c *copier) openPlace(ctx context.Context, d Destination, row *TransportRow) error {
	key := string(d.Transport) + ":" + filepath.Clean(d.Path)
	p := c.place(key)
	if p == nil {
		to, err := row.Write(ctx, d.Path, d.Name, PlaceOptions{Limits: Limits{}.WithDefaults(), Temp: c.scratch.Dir(),
			Private: c.scratch.Dir()})
		if err != nil {
			return err
		}
		p = &writtenPlace{key: key, to: to}
		c.places = append(c.places, p)
	}
	p.add(d, store.Name{Text: d.String(), Tag: d.Name, Image: nameInLayout(d.Name)})
	return nil
}

func (p *writtenPlace) add(d Destination, n store.Name) {
	p.dests, p.names = append(p.dests, d), append(p.names, n)
}

// targets are the places, those in registries first: their tags are written before files are put in place.
func (c *copier) targets() (targets []store.Target) {
	slices.SortStableFunc(c.places, func(a, b *writtenPlace) int {
		return cmp.Compare(min(len(a.dests[0].Path), 1), min(len(b.dests[0].Path), 1))
	})
	for _, p := range c.places {
		targets = append(targets, store.Target{To: p.to, Names: p.names})
	}
	return targets
}

func (c *copier) options() store.CopyOptions {
	o := store.CopyOptions{If: c.o.IfDigest, Confirm: true, Whole: true, Moved: c.event}
	if len(c.o.Attachments) > 0 {
		o.Attach = func(ctx context.Context, to store.Writer, image store.Image) error {
			for _, a := range c.o.Attachments {
				if err := a.Attach(ctx, to, image); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return o
}

// results returns those of the destinations that are written, in the order of the destinations.
func (c *copier) results(dests []Destination, accounts []store.Account) (results []Result) {
	done := map[string]Result{}
	for i, a := range accounts {
		p := c.places[i]
		for n, d := range p.dests {
			switch {
			case d.local() && a.Done:
				done[d.String()] = layoutResult(d, a, n == 0)
			case !d.local() && n < a.Tagged:
				done[d.String()] = repositoryResult(d, p.to.Name(), a, n == 0)
			}
		}
	}
	for _, e := range c.edges {
		if e.committed {
			done[e.d.String()] = e.result
		}
	}
	for _, d := range dests {
		if r, ok := done[d.String()]; ok {
			results = append(results, r)
		}
	}
	return results
}

func (c *copier) event(e store.Event) {
	if c.o.Events == nil {
		return
	}
	c.events.Lock()
	defer c.events.Unlock()
	c.o.Events(e)
}

// transports returns the table of the options.
func (o CopyOptions) transports() Transports {
	if o.Transports == nil {
		return BuiltIn()
	}
	return o.Transports
}

// remote returns the client of a copy, or of its check.
func (o CopyOptions) remote(ctx context.Context, event func(store.Event)) (*Remote, error) {
	if o.Checked != nil {
		return o.Checked.remote, nil
	}
	return NewRemote(ctx, RemoteOptions{Registry: o.Registry, Retries: o.Retries, Backoff: o.Backoff, Stall: o.Stall,
		Temp: o.Temp, Events: event})
}

// named is the name of a destination in a registry.
func (d Destination) named() (reference.Named, error) {
	ref, err := docker.ParseReference("//" + d.Name)
	if err != nil {
		return nil, registry.Wrap(err)
	}
	return ref.DockerReference(), nil
}
