package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.podman.io/image/v5/types"
)

// NewCheck opens an upload session in each repository of the targets, and compares their tags with IfDigest if that is
// set. PushOptions.Check is not used. The caller must close the check, also after an error.
func NewCheck(ctx context.Context, targets []Target, o PushOptions, sys *types.SystemContext) (*Check, error) {
	p := &Pusher{o: o}
	p.openRemote(sys)
	check := &Check{remote: p.remote, repos: map[string]*repository{}, begun: map[string]begunUpload{}}
	for _, t := range targets {
		if err := check.target(ctx, p, t); err != nil {
			return check, err
		}
	}
	return check, nil
}

// Check has the repositories that were checked, with their connections and tokens, and the upload sessions that are
// open. It is safe for concurrent use; nil is a check of nothing.
type Check struct {
	remote *Client

	mu    sync.Mutex
	repos map[string]*repository // by their names
	begun map[string]begunUpload // by the names of their repositories
	// Conflicts are the tags that point to another image than IfDigest.
	Conflicts []*ConflictError
}

// begunUpload is an upload session to which nothing has been sent.
type begunUpload struct {
	blobUpload
	since time.Time
}

// beginsFor is how long such a session is used: registries remove sessions that are idle.
const beginsFor = time.Minute

// target checks one target.
func (k *Check) target(ctx context.Context, p *Pusher, t Target) error {
	repo, known := k.repos[t.Name.Name()]
	if !known {
		var err error
		if repo, err = p.remote.pushTo(t.Name); err != nil {
			return fmt.Errorf("%s: %w", t.Text, classified{err})
		}
		k.repos[t.Name.Name()] = repo
	}
	r := &pushedRepository{p: p, repo: repo, targets: []Target{t}}
	if !known {
		u := begunUpload{blobUpload{repo: repo}, time.Now()}
		if err := r.retry(ctx, "", func() error { return u.begin(ctx) }); err != nil {
			return r.failed(ctx, t, err)
		}
		k.begun[t.Name.Name()] = u
	}
	tag := t.tag()
	if p.o.IfDigest == "" || tag == nil {
		return nil
	}
	got, err := r.current(ctx, tag.Tag())
	switch conflict := r.conflict(tag, got); {
	case err != nil:
		return r.failed(ctx, t, fmt.Errorf("what %s stands for: %w", tag, err))
	case got == conflict.Want:
	case got == "":
		return r.failed(ctx, t, conflict)
	default:
		k.Conflicts = append(k.Conflicts, conflict)
	}
	return nil
}

// repository returns a repository that was checked; nil if it was not.
func (k *Check) repository(name string) *repository {
	if k == nil {
		return nil
	}
	return k.repos[name]
}

// take returns the URL of an open upload session of a repository, once; nil if there is none.
func (k *Check) take(repo *repository) (at *url.URL, foreign bool) {
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
func (k *Check) Close(ctx context.Context) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range k.begun {
		// It need not succeed: registries remove uploads that are never finished, and some cannot cancel them.
		q := request{method: http.MethodDelete, url: u.at, foreign: u.foreign, success: accepted}
		_, _ = u.repo.try(ctx, q, "", "")
	}
	clear(k.begun)
	k.remote.Close()
}
