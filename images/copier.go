package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"go.podman.io/image/v5/docker/reference"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
)

// copier is one run of [Copy]: the places that are written to, and which destination is at which of them.
type copier struct {
	from    store.Reader
	top     v1.Descriptor
	o       CopyOptions
	scratch *Workspace
	remote  *registries.Client // nil until a destination is in a registry
	places  []*writtenPlace
	edges   []*edge // in the order of the destinations
	events  sync.Mutex
}

// edge is a destination that is no [store.Writer], and the image beside it.
type edge struct {
	dest      transport.Destination
	filled    *transport.Filled
	committed bool
}

// writtenPlace is a repository or a layout that gets the image under one or several names.
type writtenPlace struct {
	key   string
	to    store.Writer
	dests []transport.Destination
	names []store.Name
}

func newCopier(ctx context.Context, from store.Reader, top v1.Descriptor, dests []transport.Destination,
	o CopyOptions) (*copier, error) {
	w, err := o.Workspace(ctx, dests)
	if err != nil {
		return nil, err
	}
	return &copier{from: from, top: top, o: o, scratch: w}, nil
}

// close removes what is staged and was not put in its place, and what the run has opened.
func (c *copier) close() (err error) {
	for _, e := range c.edges {
		err = errors.Join(err, e.filled.Discard())
	}
	for _, p := range c.places {
		if !p.dests[0].InRegistry() {
			err = errors.Join(err, p.to.Discard())
		}
	}
	if c.remote != nil && c.o.Checked == nil {
		err = errors.Join(err, c.remote.Close())
	}
	return errors.Join(err, c.scratch.Close())
}

// open adds a destination to the places, where those in one repository or layout are one.
func (c *copier) open(ctx context.Context, d transport.Destination) error {
	row := c.o.transports().Row(d.Transport)
	switch {
	case row == nil:
		return fmt.Errorf("%w: unknown transport %q", fault.ErrInvalid, d.Transport)
	case row.Parse == nil:
		return c.openRepository(ctx, d)
	case row.Write != nil:
		return c.openPlace(ctx, d, row)
	case row.Fill == nil:
		return unsupported(row)
	}
	return nil
}

// fill writes the image beside a destination that is no place of its own.
func (c *copier) fill(ctx context.Context, d transport.Destination) error {
	row := c.o.transports().Row(d.Transport)
	if row.Fill == nil {
		return nil
	}
	filled, err := row.Fill(ctx, d.Path, d.Name, transport.Content{From: c.from, Top: c.top, Platform: c.o.Platform,
		Private: c.scratch.Dir(), Event: func(e store.Event) {
			e.Destination = d.String()
			c.event(e)
		}})
	if err != nil {
		return err
	}
	c.edges = append(c.edges, &edge{dest: d, filled: filled})
	return nil
}

// commit puts the images beside their destinations in place.
func (c *copier) commit(ctx context.Context) error {
	for _, e := range c.edges {
		if err := e.filled.Commit(ctx); err != nil {
			return fmt.Errorf("%s: %w", e.dest, err)
		}
		e.committed = true
	}
	return nil
}

// findPlace returns a place that is open; nil if it is not.
func (c *copier) findPlace(key string) *writtenPlace {
	for _, p := range c.places {
		if p.key == key {
			return p
		}
	}
	return nil
}

func (c *copier) openRepository(ctx context.Context, d transport.Destination) error {
	named, err := d.Repository()
	if err != nil {
		return registry.Wrap(err)
	}
	if canonical, ok := named.(reference.Canonical); ok && canonical.Digest() != c.top.Digest {
		return registry.Wrap(fmt.Errorf("%w: the image has the digest %s", fault.ErrIntegrity, c.top.Digest))
	}
	if c.remote == nil {
		if c.remote, err = c.o.remote(ctx, c.event); err != nil {
			return err
		}
	}
	p := c.findPlace(named.Name())
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
func (c *copier) openPlace(ctx context.Context, d transport.Destination, row *transport.Row) error {
	key := string(d.Transport) + ":" + filepath.Clean(d.Path)
	p := c.findPlace(key)
	if p == nil {
		to, err := row.Write(ctx, d.Path, d.Name, transport.Options{Limits: Limits{}.WithDefaults(), Temp: c.scratch.Dir(),
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

func (p *writtenPlace) add(d transport.Destination, n store.Name) {
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
func (c *copier) results(dests []transport.Destination, accounts []store.Account) (results []Result) {
	done := map[string]Result{}
	for i, a := range accounts {
		p := c.places[i]
		for n, d := range p.dests {
			switch {
			case !d.InRegistry() && a.Done:
				done[d.String()] = newResult(d, "", a, n == 0)
			case d.InRegistry() && n < a.Tagged:
				done[d.String()] = newResult(d, p.to.Name(), a, n == 0)
			}
		}
	}
	for _, e := range c.edges {
		if e.committed {
			text := e.dest.String()
			done[text] = Result{Destination: text, Reference: text, Digest: e.filled.Digest, MediaType: e.filled.MediaType,
				Written: e.filled.Written, Reused: e.filled.Reused}
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

func (o CopyOptions) transports() transport.Table {
	if o.Transports == nil {
		return BuiltIn()
	}
	return o.Transports
}

// checkAttachable returns an error if there are attachments and a destination keeps none.
func (o CopyOptions) checkAttachable(dests []transport.Destination) error {
	if len(o.Attachments) == 0 {
		return nil
	}
	for _, d := range dests {
		if err := o.transports().CheckAttachments(d); err != nil {
			return err
		}
	}
	return nil
}

// remote returns the client of a copy, or of its check.
func (o CopyOptions) remote(ctx context.Context, event func(store.Event)) (*registries.Client, error) {
	if o.Checked != nil {
		return o.Checked.remote, nil
	}
	o.Events = event
	return registries.New(ctx, o.Options)
}
