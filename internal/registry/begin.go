package registry

import (
	"context"
	"net/url"
	"time"
)

// begunUpload is an upload session to which nothing has been sent.
type begunUpload struct {
	blobUpload
	since time.Time
}

// beginsFor is how long such a session is used: registries remove sessions that are idle.
const beginsFor = time.Minute

// Begin opens an upload session, to find out whether the repository can be written to. The first small blob is sent in it;
// [Repository.Discard] cancels it.
func (r *Repository) Begin(ctx context.Context) error {
	u := &begunUpload{blobUpload{repo: r.repo}, time.Now()}
	if err := r.retry(ctx, func() error { return u.begin(ctx) }); err != nil {
		return remoteError(err)
	}
	r.beginning.Lock()
	defer r.beginning.Unlock()
	r.begun = u
	return nil
}

// takeBegun returns the URL of an open upload session, once; nil if there is none.
func (r *Repository) takeBegun() (at *url.URL, foreign bool) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	u := r.begun
	if u == nil || time.Since(u.since) > beginsFor {
		return nil, false
	}
	r.begun = nil
	return u.at, u.foreign
}

// Discard cancels an upload session that was not used: beyond that, a registry has at once what is written.
func (r *Repository) Discard() error {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	if u := r.begun; u != nil {
		u.cancel(context.Background())
		r.begun = nil
	}
	return nil
}
