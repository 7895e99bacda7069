package images

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// CheckPush checks, before an image is made, that the repositories of those destinations that are in registries can be
// written to: it opens an upload session in each. Errors are those that [Copy] would return, of the class
// [ErrRegistry], [transport.ErrNoAttachments], or a [*store.ConflictError] if [CopyOptions.IfDigest] is set and a tag
// does not exist. Other destinations are not checked.
//
// Pass the result to [Copy] in [CopyOptions.Checked], which goes on with its connections and uploads, and close it
// after that. It is nil if no destination is in a registry.
func (o CopyOptions) CheckPush(ctx context.Context, dests []transport.Destination) (_ *PushCheck, err error) {
	all := ctx
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	defer func() { err = redact.Error(err) }()
	if err := o.checkAttachable(dests); err != nil {
		return nil, err
	}
	check := &PushCheck{}
	defer func() {
		if err != nil {
			err = errors.Join(err, check.Close(all))
		}
	}()
	for _, d := range dests {
		if !d.InRegistry() {
			continue
		}
		if check.remote == nil {
			o.Checked = nil
			if check.remote, err = o.remote(ctx, o.Events); err != nil {
				return nil, err
			}
		}
		if err := check.destination(ctx, d, o.IfDigest); err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
				err = errors.Join(cause, err) // why it was not tried again
			}
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	if check.remote == nil {
		return nil, nil
	}
	return check, nil
}

// PushCheck is the result of [CopyOptions.CheckPush]: the repositories that were checked, with their connections and
// tokens, and the upload sessions that are open. It is safe for concurrent use; nil stands for a check of nothing.
type PushCheck struct {
	remote    *registries.Client
	checked   []*registries.Repository
	conflicts []*store.ConflictError
}

func (k *PushCheck) destination(ctx context.Context, d transport.Destination, want string) error {
	named, err := d.Repository()
	if err != nil {
		return registry.Wrap(err)
	}
	to, err := k.remote.Repository(named.Name())
	if err != nil {
		return err
	}
	if !slices.Contains(k.checked, to) {
		if err := to.Begin(ctx); err != nil {
			return err
		}
		k.checked = append(k.checked, to)
	}
	tag, ok := named.(reference.NamedTagged)
	if want == "" || !ok {
		return nil
	}
	is, err := store.TagDigest(ctx, to, tag.Tag())
	if err != nil {
		return fmt.Errorf("what %s stands for: %w", tag, err)
	}
	conflict := store.Conflict(to, tag.Tag(), want, is)
	switch is {
	case conflict.Want:
	case "":
		return conflict
	default:
		k.conflicts = append(k.conflicts, conflict)
	}
	return nil
}

// Conflicts returns the tags that point to another image than [CopyOptions.IfDigest] says. The copy fails for them,
// unless the image that is copied has that digest.
func (k *PushCheck) Conflicts() []*store.ConflictError {
	if k == nil {
		return nil
	}
	return k.conflicts
}

// Close cancels the uploads that were not used, and ends idle connections.
func (k *PushCheck) Close(context.Context) (err error) {
	if k == nil || k.remote == nil {
		return nil
	}
	for _, r := range k.checked {
		err = errors.Join(err, r.Discard())
	}
	return errors.Join(err, k.remote.Close())
}

// CheckIfDigest checks the text of [CopyOptions.IfDigest].
func CheckIfDigest(text string) error {
	if text == "" || text == store.IfNone {
		return nil
	}
	return verify.Digest(digest.Digest(text))
}
