package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// Target is a name in a registry that an image is pushed to.
type Target struct {
	// Text is the name in errors and events.
	Text string
	Name reference.Named
}

// tag is the tag of a target; nil if it is named by its digest.
func (t Target) tag() reference.NamedTagged {
	tagged, _ := t.Name.(reference.NamedTagged)
	return tagged
}

// PushOptions configure a [Pusher].
type PushOptions struct {
	// Client configures the requests. Its Stall is two minutes by default.
	Client Options
	// IfDigest, unless empty, is what the tags must point to until they are written: a digest, or [IfNone] for nothing.
	IfDigest string
	// Check, unless nil, is what [NewCheck] found out with the same options.
	Check *Check
	// Attach, unless nil, is called for each target when all repositories have the image, and before the tags are
	// written: it writes what belongs to the image.
	Attach func(ctx context.Context, to *Repository, t Target) error
	// Events receives the steps, from one goroutine at a time.
	Events func(transfer.Event)
}

// Pusher writes an image to registries.
type Pusher struct {
	o      PushOptions
	remote *Client
	src    types.ImageSource
	image  *pushedImage
	repos  []*pushedRepository
	events sync.Mutex
}

// blobLocator is images.BlobLocator.
type blobLocator interface {
	BlobRepositories(d digest.Digest) []string
}

// NewPusher reads the manifests of an image, which the policy must accept, and prepares the targets. If IfDigest is
// set, it compares the tags before anything is written. sys is the configuration of the machine.
func NewPusher(ctx context.Context, src types.ImageSource, policy *signature.PolicyContext, targets []Target,
	o PushOptions, sys *types.SystemContext) (_ *Pusher, err error) {
	p := &Pusher{o: o, src: src}
	p.openRemote(sys)
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.image, err = readPushed(ctx, src, policy); err != nil {
		return nil, err
	}
	for _, t := range targets {
		if err := p.add(t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Text, classified{err})
		}
	}
	if o.IfDigest == "" {
		return p, nil
	}
	for _, r := range p.repos {
		for _, t := range r.targets {
			if _, err := r.expect(ctx, t); err != nil {
				return nil, r.failed(ctx, t, err)
			}
		}
	}
	return p, nil
}

// openRemote takes over the client of the check, or makes one.
func (p *Pusher) openRemote(sys *types.SystemContext) {
	if p.o.Check != nil {
		p.remote = p.o.Check.remote
		return
	}
	if p.o.Client.Stall <= 0 {
		p.o.Client.Stall = 2 * time.Minute
	}
	p.remote = NewClient(p.o.Client, sys, p.event)
}

// add adds a target. Targets in one repository share their blobs.
func (p *Pusher) add(t Target) error {
	top := p.image.top()
	if canonical, ok := t.Name.(reference.Canonical); ok && canonical.Digest() != top.digest {
		return fmt.Errorf("%w: the image has the digest %s", fault.ErrIntegrity, top.digest)
	}
	at := slices.IndexFunc(p.repos, func(r *pushedRepository) bool { return r.repo.name.Name() == t.Name.Name() })
	if at < 0 {
		repo := p.o.Check.repository(t.Name.Name())
		if repo == nil {
			var err error
			if repo, err = p.remote.pushTo(t.Name); err != nil {
				return err
			}
		}
		known, _ := p.src.(blobLocator)
		r := &pushedRepository{p: p, repo: repo, mounts: &mounter{repo: repo, known: known},
			blobs: map[digest.Digest]pushedBlob{}}
		for _, earlier := range p.repos {
			r.mounts.others = append(r.mounts.others, earlier.repo.name.Name())
		}
		at, p.repos = len(p.repos), append(p.repos, r)
	}
	p.repos[at].targets = append(p.repos[at].targets, t)
	return nil
}

// Close ends idle connections, unless they are those of the check. It may be called on nil.
func (p *Pusher) Close() {
	if p != nil && p.o.Check == nil {
		p.remote.Close()
	}
}

// event passes an event on, from any goroutine.
func (p *Pusher) event(e transfer.Event) {
	if p.o.Events == nil {
		return
	}
	p.events.Lock()
	defer p.events.Unlock()
	p.o.Events(e)
}

// Push writes the image to all repositories and, when all have it, what is attached to it, and then the tags. It
// returns the results of the targets whose tags are written, also with an error.
func (p *Pusher) Push(ctx context.Context) (done []PushResult, err error) {
	for _, r := range p.repos {
		err := r.fill(ctx)
		if err == nil {
			err = r.confirm(ctx)
		}
		if err != nil {
			return nil, r.failed(ctx, r.targets[0], err)
		}
	}
	for _, r := range p.repos {
		if err := r.attach(ctx); err != nil {
			return nil, err
		}
	}
	for _, r := range p.repos {
		tagged, err := r.tagAll(ctx)
		for i := range tagged {
			done = append(done, r.result(i))
		}
		if err != nil {
			return done, err
		}
	}
	for _, r := range p.repos {
		if err := r.settle(ctx); err != nil {
			return done, err
		}
	}
	return done, nil
}

// PushResult is what was written for one target.
type PushResult struct {
	Target Target
	// Reference names the image by its digest.
	Reference string
	Digest    digest.Digest
	MediaType string
	// Blobs are all blobs of the image. For the second target of a repository and those after it, all are reused.
	Blobs []pushedBlob
	// Manifests is the number of manifests that were sent, and ManifestBytes their size together.
	Manifests     int
	ManifestBytes int64
}

// pushedBlob is a blob, and how it got into the repository.
type pushedBlob struct {
	Digest digest.Digest
	Size   int64
	How    how
	// From is the repository that it was mounted from, "HOST/REPOSITORY"; empty unless it was mounted.
	From string
}

// how is the way in which a blob got into a repository.
type how string

const (
	pushed  how = "pushed"
	mounted how = "mounted"
	reused  how = "reused"
)

// failed gives an error its class and the name of the target.
func (r *pushedRepository) failed(ctx context.Context, t Target, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		err = classified{err}
	}
	return fmt.Errorf("%s: %w", t.Text, err)
}
