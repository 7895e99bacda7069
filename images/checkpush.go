package images

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/verify"
)

// IfNone is the value of [CopyOptions.IfDigest] for tags that must not exist.
const IfNone = registry.IfNone

// CheckPush checks, before an image is made, that the repositories of those destinations that are in registries can be
// written to: it opens an upload session in each. Errors are those that [Copy] would return, of the class
// [ErrRegistry], [ErrNoAttachments], or a [*ConflictError] if [CopyOptions.IfDigest] is set and a tag does not exist.
// Other destinations are not checked.
//
// Pass the result to [Copy] in [CopyOptions.Checked], which goes on with its connections and uploads, and close it
// after that. It is nil if no destination is in a registry.
func CheckPush(ctx context.Context, dests []Destination, o CopyOptions) (_ *PushCheck, err error) {
	all := ctx
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	defer func() { err = redact.Error(err) }()
	if err := checkAttachable(dests, o.Attachments); err != nil {
		return nil, err
	}
	targets, err := registryTargets(dests)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	w, err := NewWorkspace(ctx, nil, o.Temp)
	if err != nil {
		return nil, err
	}
	check := &PushCheck{work: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, check.Close(all))
		}
	}()
	sys, err := o.Registry.System(ctx, w.Dir())
	if err != nil {
		return nil, err
	}
	check.check, err = registry.NewCheck(ctx, targets, o.push(), sys)
	return check, err
}

// PushCheck is the result of [CheckPush]. It is safe for concurrent use; nil stands for a check of nothing.
type PushCheck struct {
	work  *Workspace
	check *registry.Check
}

// Conflicts returns the tags that point to another image than [CopyOptions.IfDigest] says. The copy fails for them,
// unless the image that is copied has that digest.
func (k *PushCheck) Conflicts() []*ConflictError {
	if k == nil {
		return nil
	}
	return k.check.Conflicts
}

// Close cancels the uploads that were not used, and ends idle connections.
func (k *PushCheck) Close(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.check.Close(ctx)
	return k.work.Close()
}

// CheckIfDigest checks the text of [CopyOptions.IfDigest].
func CheckIfDigest(text string) error {
	if text == "" || text == IfNone {
		return nil
	}
	return verify.Digest(digest.Digest(text))
}

// registryTargets are the destinations that are in registries.
func registryTargets(dests []Destination) (targets []registry.Target, err error) {
	for _, d := range dests {
		if d.local() {
			continue
		}
		ref, err := docker.ParseReference("//" + d.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, registry.Wrap(err))
		}
		targets = append(targets, registry.Target{Text: d.String(), Name: ref.DockerReference()})
	}
	return targets, nil
}

// push are the options of the part of a copy that goes to registries.
func (o CopyOptions) push() registry.PushOptions {
	p := registry.PushOptions{
		Client: registry.Options{Config: registry.Config(o.Registry), Retries: o.Retries, Backoff: o.Backoff,
			Stall: o.Stall},
		IfDigest: o.IfDigest, Events: o.Events,
	}
	if o.Checked != nil {
		p.Check = o.Checked.check
	}
	return p
}
