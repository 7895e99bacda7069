package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// pusher writes an image to registries.
type pusher struct {
	c       *copier
	checked *PushCheck // nil, or who the remote is of
	remote  *remote
	src     types.ImageSource
	image   *pushedImage
	repos   []*pushedRepository
	events  sync.Mutex
}

// newPusher makes ready for those of the destinations that are in registries; nil if there are none. Where the names must
// stand for something, that is looked at before anything is written anywhere.
func (c *copier) newPusher(ctx context.Context, dests []Destination, results []Result) (_ *pusher, err error) {
	if !slices.ContainsFunc(dests, func(d Destination) bool { return !d.local() }) {
		return nil, nil
	}
	p := &pusher{c: c}
	p.openRemote()
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.src, err = c.src.NewImageSource(ctx, c.sys); err != nil {
		return nil, err
	}
	if p.image, err = c.readPushed(ctx, p.src); err != nil {
		return nil, err
	}
	for i, d := range dests {
		if d.local() {
			continue
		}
		if err := p.add(d, &results[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", d, registryError{err})
		}
	}
	for _, r := range p.repos {
		for _, d := range r.dests {
			if c.o.IfDigest == "" {
				continue
			}
			if _, err := r.expect(ctx, d); err != nil {
				return nil, r.failed(ctx, d, err)
			}
		}
	}
	return p, nil
}

// add adds a destination, which shares its blobs with the others in its repository.
func (p *pusher) add(d Destination, result *Result) error {
	ref, err := d.reference("")
	if err != nil {
		return err
	}
	named := ref.DockerReference()
	top := p.image.top()
	if canonical, ok := named.(reference.Canonical); ok && canonical.Digest() != top.digest {
		return fmt.Errorf("%w: the image has the digest %s", fault.ErrIntegrity, top.digest)
	}
	*result = Result{Destination: d.String(), Reference: named.Name() + "@" + top.digest.String(), Digest: top.digest, MediaType: top.kind}
	at := slices.IndexFunc(p.repos, func(r *pushedRepository) bool { return r.repo.name.Name() == named.Name() })
	if at < 0 {
		repo := p.checked.repository(named.Name())
		if repo == nil {
			if repo, err = p.remote.pushTo(named); err != nil {
				return err
			}
		}
		lenders, _ := p.src.(Lenders)
		r := &pushedRepository{p: p, repo: repo, lend: &lending{repo: repo, from: lenders}, transfers: map[digest.Digest]Transfer{}}
		for _, earlier := range p.repos {
			r.lend.others = append(r.lend.others, earlier.repo.name.Name())
		}
		at, p.repos = len(p.repos), append(p.repos, r)
	}
	r := p.repos[at]
	r.dests, r.results = append(r.dests, d), append(r.results, result)
	return nil
}

func (p *pusher) close() error {
	if p == nil {
		return nil
	}
	if p.checked == nil {
		p.remote.close()
	}
	if p.src == nil {
		return nil
	}
	return p.src.Close()
}

// event tells of something, from any goroutine.
func (p *pusher) event(e transfer.Event) {
	p.events.Lock()
	defer p.events.Unlock()
	p.c.event(e)
}

// push brings the image to all repositories and, when all have it, gives it its names. It returns the destinations that
// have theirs.
func (p *pusher) push(ctx context.Context) (done map[string]bool, err error) {
	done = map[string]bool{}
	if p == nil {
		return done, nil
	}
	for _, r := range p.repos {
		err := r.fill(ctx)
		if err == nil {
			err = r.confirm(ctx)
		}
		if err != nil {
			return done, r.failed(ctx, r.dests[0], err)
		}
	}
	for _, r := range p.repos {
		err := r.tagAll(ctx, done)
		r.account()
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
