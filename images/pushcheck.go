package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/redact"
)

// CheckPush finds out, before an image is made for them, whether the repositories of the destinations in registries can
// be written to: it begins an upload in each. Errors are those that [Copy] would end with, of the class [ErrRegistry], or a
// [*ConflictError] about a name without an image where [CopyOptions.IfDigest] wants one. It looks at nothing else of the
// destinations, and of the options uses those that concern registries. A copy goes on with what it returns, which is to be
// closed after that, and is nil if no destination is in a registry.
func CheckPush(ctx context.Context, dests []Destination, o CopyOptions) (_ *PushCheck, err error) {
	if !slices.ContainsFunc(dests, func(d Destination) bool { return !d.local() }) {
		return nil, nil
	}
	all := ctx
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
		defer cancel()
	}
	defer func() { err = redact.Error(err) }()
	w, err := NewWorkspace(ctx, nil, o.Temp)
	if err != nil {
		return nil, err
	}
	check := &PushCheck{work: w, repos: map[string]*repository{}, begun: map[string]begunUpload{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, check.Close(all))
		}
	}()
	c := &copier{o: o}
	if c.sys, err = o.Registry.System(w.Dir()); err != nil {
		return nil, err
	}
	p := &pusher{c: c}
	p.openRemote()
	check.remote = p.remote
	for _, d := range dests {
		if d.local() {
			continue
		}
		if err := check.destination(ctx, p, d); err != nil {
			return nil, err
		}
	}
	return check, nil
}

// PushCheck is what [CheckPush] has found out: the repositories with their connections and tokens, and the uploads that it
// has begun. It is safe for concurrent use; nil stands for nothing.
type PushCheck struct {
	work   *Workspace
	remote *remote

	mu        sync.Mutex
	repos     map[string]*repository // by their names
	begun     map[string]begunUpload // by the names of their repositories
	conflicts []*ConflictError
}

// begunUpload is an upload that nothing has been sent to.
type begunUpload struct {
	blobUpload
	since time.Time
}

// beginsFor is how long an upload that was begun is used: registries forget those that nothing comes of.
const beginsFor = time.Minute

// Conflicts are the names that stand for another image than [CopyOptions.IfDigest] says. The copy fails for them, unless it
// is of this very image.
func (k *PushCheck) Conflicts() []*ConflictError {
	if k == nil {
		return nil
	}
	return k.conflicts
}

// destination checks one destination.
func (k *PushCheck) destination(ctx context.Context, p *pusher, d Destination) error {
	ref, err := d.reference("")
	if err != nil {
		return fmt.Errorf("%s: %w", d, registryError{err})
	}
	named := ref.DockerReference()
	repo, known := k.repos[named.Name()]
	if !known {
		if repo, err = p.remote.pushTo(named); err != nil {
			return fmt.Errorf("%s: %w", d, registryError{err})
		}
		k.repos[named.Name()] = repo
	}
	r := &pushedRepository{p: p, repo: repo, dests: []Destination{d}}
	if !known {
		u := begunUpload{blobUpload{repo: repo}, time.Now()}
		if err := r.retry(ctx, "", func() error { return u.begin(ctx) }); err != nil {
			return r.failed(ctx, d, err)
		}
		k.begun[named.Name()] = u
	}
	tag, _ := named.(reference.NamedTagged)
	if p.c.o.IfDigest == "" || tag == nil {
		return nil
	}
	got, err := r.current(ctx, tag.Tag())
	switch conflict := r.conflict(tag, got); {
	case err != nil:
		return r.failed(ctx, d, fmt.Errorf("what %s stands for: %w", tag, err))
	case got == conflict.Want:
	case got == "":
		return r.failed(ctx, d, conflict)
	default:
		k.conflicts = append(k.conflicts, conflict)
	}
	return nil
}

// repository is one that was checked; nil if this one was not.
func (k *PushCheck) repository(name string) *repository {
	if k == nil {
		return nil
	}
	return k.repos[name]
}

// take is where an upload goes on that was begun, for one caller; nil if there is none.
func (k *PushCheck) take(repo *repository) (at *url.URL, foreign bool) {
	if k == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	u, ok := k.begun[repo.name.Name()]
	if !ok || time.Since(u.since) > beginsFor {
		return nil, false
	}
	delete(k.begun, repo.name.Name())
	return u.at, u.foreign
}

// Close cancels the uploads that were not used, and ends idle connections.
func (k *PushCheck) Close(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.begun {
		// Registries forget uploads that nothing comes of, and some cannot cancel them: it need not succeed.
		q := request{method: http.MethodDelete, url: u.at, foreign: u.foreign, success: accepted}
		_, _ = u.repo.try(ctx, q, "", "")
	}
	clear(k.begun)
	if k.remote != nil {
		k.remote.close()
	}
	return k.work.Close()
}

// openRemote makes ready to talk to registries with the options of the copy.
func (p *pusher) openRemote() {
	if p.checked = p.c.o.Checked; p.checked != nil {
		p.remote = p.checked.remote
		return
	}
	stall := p.c.o.Stall
	if stall <= 0 {
		stall = 2 * time.Minute
	}
	o := p.c.o
	p.remote = newRemote(remoteOptions{Registry: o.Registry, Retries: o.Retries, Backoff: o.Backoff, Stall: stall}, p.c.sys, p.event)
}
