package registry

import (
	"context"
	"fmt"

	"github.com/operator-bindery/bindery/internal/reflist"
)

// attach lists those manifests of the image that have a subject themselves, and has the attachments written, once for
// each target. The repository has the image.
func (r *pushedRepository) attach(ctx context.Context) error {
	to := &Repository{repo: r.repo}
	to.tags.hasty = r.manifests > 0
	for _, m := range r.p.image.manifests {
		d, subject, err := reflist.Describe(m.text, m.kind)
		if err == nil && subject != nil {
			err = to.list(ctx, d, subject.Digest)
		}
		if err != nil {
			return r.failed(ctx, r.targets[0], err)
		}
	}
	for _, t := range r.targets {
		if r.p.o.Attach == nil {
			break
		}
		if err := r.p.o.Attach(ctx, to, t); err != nil {
			return fmt.Errorf("%s: %w", t.Text, err)
		}
	}
	r.attached = to
	return nil
}

// settle makes sure that the attachments stay listed, when the tags are written. No other client knew an image that
// this push has brought, so that the time until now is pause enough before the first look.
func (r *pushedRepository) settle(ctx context.Context) error {
	if r.attached == nil {
		return nil
	}
	if err := r.attached.Settle(ctx); err != nil {
		return r.failed(ctx, r.targets[0], err)
	}
	return nil
}
