package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// CheckPush finds out, before an image is made for them, whether the repositories of the destinations in registries can
// be written to: it begins an upload in each and cancels it. Errors are those that [Copy] would end with, of the class
// [ErrRegistry]. It looks at nothing else of the destinations, and of the options uses those that concern registries.
func CheckPush(ctx context.Context, dests []Destination, o CopyOptions) (err error) {
	if !slices.ContainsFunc(dests, func(d Destination) bool { return !d.local() }) {
		return nil
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
		defer cancel()
	}
	defer func() { err = withoutSecrets(err) }()
	w, err := NewWorkspace(ctx, nil, o.Temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c := &copier{o: o}
	if c.sys, err = o.Registry.System(w.Dir()); err != nil {
		return err
	}
	p := &pusher{c: c}
	p.openRemote()
	defer p.remote.close()
	checked := map[string]bool{}
	for _, d := range dests {
		if d.local() {
			continue
		}
		ref, err := d.reference("")
		if err != nil {
			return fmt.Errorf("%s: %w", d, registryError{err})
		}
		named := ref.DockerReference()
		if checked[named.Name()] {
			continue
		}
		checked[named.Name()] = true
		repo, err := p.remote.pushTo(named)
		if err != nil {
			return fmt.Errorf("%s: %w", d, registryError{err})
		}
		r := &pushedRepository{p: p, repo: repo, dests: []Destination{d}}
		if err := r.retry(ctx, "", func() error { return repo.tryUpload(ctx) }); err != nil {
			return r.failed(ctx, d, err)
		}
	}
	return nil
}

// openRemote makes ready to talk to registries with the options of the copy.
func (p *pusher) openRemote() {
	stall := p.c.o.Stall
	if stall <= 0 {
		stall = 2 * time.Minute
	}
	o := p.c.o
	p.remote = newRemote(ClientOptions{Registry: o.Registry, Retries: o.Retries, Backoff: o.Backoff, Stall: stall}, p.c.sys, p.event)
}

// tryUpload begins an upload and cancels it.
func (p *repository) tryUpload(ctx context.Context) error {
	u := blobUpload{repo: p}
	if err := u.begin(ctx); err != nil {
		return err
	}
	// Registries forget uploads that nothing comes of, and some cannot cancel them: it need not succeed.
	q := request{method: http.MethodDelete, url: u.at, foreign: u.foreign, success: accepted}
	if _, err := p.try(ctx, q, "", ""); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
