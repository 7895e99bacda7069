package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// CopyOptions say how [Copy] works. The zero value copies the image, or every image of an index, once and without a
// limit of time.
type CopyOptions struct {
	Registry Registry
	// Retries is how many more times a registry is tried that is busy, failing, or whose connection breaks.
	Retries int
	// Backoff is the first pause between attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Timeout, unless zero, ends everything.
	Timeout time.Duration
	// Stall ends an attempt on a registry in which nothing has moved for so long; zero means two minutes.
	Stall time.Duration
	// Temp is where temporary files go that belong beside no output; empty means the system's place for them.
	Temp string
	// IfDigest, unless empty, is what the names in registries must stand for until they are written: a digest, or [IfNone] for
	// no image. It is looked at before anything is written and again just before each name is, which is as good as registries
	// allow; a name that stands for something else is a [*ConflictError].
	IfDigest string
	// Checked, unless nil, is what [CheckPush] has found out with the same options. What it says to Events it says to those of
	// the check.
	Checked *PushCheck
	// Platform is what a store gets of an index; that of this machine, or any for Linux if there is none, if it is zero.
	Platform v1.Platform
	// Policy decides whether the source may be read; nil accepts images assembled by this module and refuses others.
	Policy *signature.Policy
	// Events, unless nil, is told what happens. It is called by one goroutine at a time.
	Events func(transfer.Event)
}

// Result is what was written to one destination.
type Result struct {
	// Destination is its text.
	Destination string `json:"destination"`
	// Reference is what the image can be had by again: with its digest where the transport knows digests.
	Reference string        `json:"reference"`
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	// Written and Reused are the blobs that went there, the configuration among them, and those that were there already.
	// Mounted are those that a registry took from another of its repositories.
	Written []digest.Digest `json:"written,omitempty"`
	Reused  []digest.Digest `json:"reused,omitempty"`
	Mounted []digest.Digest `json:"mounted,omitempty"`
	// Blobs tells of every blob of an image in a registry, and Traffic sums them up. Of several names in one repository the
	// first brings everything there.
	Blobs   []Transfer `json:"blobs,omitempty"`
	Traffic *Traffic   `json:"traffic,omitempty"`
}

// Copy writes the image to all destinations. Files and directories are first prepared beside their places, and stores get the
// image without its name, then
// registries get blobs and manifests, then the names there, and at last everything prepared is put in place by renames: if
// a step fails, no later one has begun, and no registry's tag names an incomplete image. Errors of the last two steps can
// leave some destinations done; the results tell which. Errors do not show credentials.
//
// A blob is only read from the source where a registry has it neither in the repository nor, as far as the source knows
// ([BlobLocator]), in another one that it can be mounted from.
func Copy(ctx context.Context, src types.ImageReference, dests []Destination, o CopyOptions) (results []Result, err error) {
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	defer func() { err = redact.Error(err) }()
	if err := checkDistinct(dests); err != nil {
		return nil, err
	}
	if err := CheckIfDigest(o.IfDigest); err != nil {
		return nil, err
	}
	c, err := newCopier(ctx, src, dests, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.checkFormats(ctx, dests); err != nil {
		return nil, err
	}

	outputs := make([]prepared, len(dests))
	local := make([]Result, len(dests)) // those of destinations in registries are empty
	push, err := c.preparePush(ctx, dests)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, push.close()) }()
	defer func() {
		for _, out := range outputs {
			if out != nil {
				err = errors.Join(err, out.Discard())
			}
		}
	}()
	for i, d := range dests {
		if !d.local() {
			continue
		}
		out, err := c.prepareLocal(ctx, d, &local[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		outputs[i] = out
	}
	pushed, err := push.run(ctx)
	if err != nil {
		for _, d := range dests {
			if r, ok := pushed[d.String()]; ok {
				results = append(results, r)
			}
		}
		return results, err
	}
	var done []Result
	for i, d := range dests {
		if out := outputs[i]; out != nil {
			if err := out.Commit(ctx); err != nil {
				return done, fmt.Errorf("%s: %w", d, err)
			}
		}
		if r, ok := pushed[d.String()]; ok {
			local[i] = r
		}
		done = append(done, local[i])
	}
	return done, nil
}

// registryPush is the part of a copy that goes to registries; nil if no destination is in one.
type registryPush struct {
	src    types.ImageSource
	pusher *registry.Pusher
}

func (c *copier) preparePush(ctx context.Context, dests []Destination) (*registryPush, error) {
	targets, err := registryTargets(dests)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	src, err := c.src.NewImageSource(ctx, c.sys)
	if err != nil {
		return nil, err
	}
	p, err := registry.NewPusher(ctx, src, c.policy, targets, c.o.push(), c.sys)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return &registryPush{src, p}, nil
}

func (p *registryPush) close() error {
	if p == nil {
		return nil
	}
	p.pusher.Close()
	return p.src.Close()
}

// run pushes the image. It returns the results by the text of their destinations: those whose tags are written, also with an
// error.
func (p *registryPush) run(ctx context.Context) (map[string]Result, error) {
	if p == nil {
		return nil, nil
	}
	pushed, err := p.pusher.Push(ctx)
	results := map[string]Result{}
	for _, done := range pushed {
		results[done.Target.Text] = pushedResult(done)
	}
	return results, err
}

// deadline is the context with the limit of time that is set.
func (o CopyOptions) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
}

// prepared is a local destination that has everything but its name.
type prepared interface {
	// Commit gives it the name.
	Commit(ctx context.Context) error
	// Discard tidies up, also after commit.
	Discard() error
}

// prepareLocal prepares a destination that is in no registry.
func (c *copier) prepareLocal(ctx context.Context, d Destination, r *Result) (prepared, error) {
	if d.Transport == Store {
		return c.prepareStored(ctx, d, r)
	}
	out, err := c.prepareFiles(ctx, d, r)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// prepareFiles prepares a destination in files.
func (c *copier) prepareFiles(ctx context.Context, d Destination, r *Result) (_ *layouts.Output, err error) {
	src, err := c.src.NewImageSource(ctx, c.sys)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	out, err := layouts.NewOutput(ctx, d.place(), src)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	ref, err := out.Reference()
	if err != nil {
		return nil, err
	}
	if err := c.copyTo(ctx, d, ref, r); err != nil {
		return nil, err
	}
	return out, out.Finish(ctx)
}

// checkDistinct refuses two images in one file: the second would replace the first.
func checkDistinct(dests []Destination) error {
	seen := map[string]bool{}
	for _, d := range dests {
		key := d.String()
		if d.local() && d.Transport != OCI && d.Transport != Store {
			key = d.Path
		}
		if seen[key] {
			return fmt.Errorf("%s: given twice", d)
		}
		seen[key] = true
	}
	return nil
}

// checkFormats refuses, before anything is written, what a destination cannot hold without being another image.
func (c *copier) checkFormats(ctx context.Context, dests []Destination) (err error) {
	src, err := c.src.NewImageSource(ctx, c.sys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	_, kind, err := src.GetManifest(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range dests {
		switch {
		case d.Transport == DockerArchive && manifest.MIMETypeIsMultiImage(kind):
			return fmt.Errorf("%s: an archive of docker holds the image of one platform, and this is an index of several", d)
		case (d.Transport == OCI || d.Transport == OCIArchive) && kind != v1.MediaTypeImageManifest && kind != v1.MediaTypeImageIndex:
			return fmt.Errorf("%s: an OCI layout holds OCI images only, and this is %s: take the oci format, or a destination of docker://, dir: or docker-archive", d, kind)
		}
	}
	return nil
}

// copier is one run of [Copy].
type copier struct {
	src     types.ImageReference
	o       CopyOptions
	sys     *types.SystemContext
	policy  *signature.PolicyContext
	scratch *Workspace
}

func newCopier(ctx context.Context, src types.ImageReference, dests []Destination, o CopyOptions) (*copier, error) {
	policy, err := newPolicyContext(o.Policy)
	if err != nil {
		return nil, err
	}
	w, err := NewWorkspace(ctx, dests, o.Temp)
	if err != nil {
		return nil, err
	}
	sys, err := o.Registry.System(w.Dir())
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &copier{src: src, o: o, sys: sys, policy: policy, scratch: w}, nil
}

func (c *copier) close() error { return errors.Join(c.policy.Destroy(), c.scratch.Close()) }

// copyTo copies the image to a local reference of the library and fills the result.
func (c *copier) copyTo(ctx context.Context, d Destination, to types.ImageReference, r *Result) error {
	progress := make(chan types.ProgressProperties, 16)
	finished := make(chan struct{})
	*r = Result{Destination: d.String(), Reference: d.String()}
	go func() {
		defer close(finished)
		for p := range progress {
			c.progress(d, p, r)
		}
	}()
	text, err := copy.Image(ctx, c.policy, to, c.src, &copy.Options{
		SourceCtx:          c.sys,
		DestinationCtx:     c.sys,
		ImageListSelection: copy.CopyAllImages,
		// Archives of docker are converted on the way; everything else keeps the digest that was announced.
		PreserveDigests:  d.Transport != DockerArchive,
		Progress:         progress,
		ProgressInterval: 200 * time.Millisecond,
	})
	close(progress)
	<-finished
	if err != nil {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		return err
	}
	r.Digest, err = manifest.Digest(text)
	r.MediaType = manifest.GuessMIMEType(text)
	return err
}

func (c *copier) progress(d Destination, p types.ProgressProperties, r *Result) {
	e := transfer.Event{Destination: d.String(), Blob: p.Artifact.Digest, Size: p.Artifact.Size, Done: int64(p.Offset)}
	switch p.Event {
	case types.ProgressEventNewArtifact:
		e.Kind = transfer.EventBlobStart
	case types.ProgressEventRead:
		e.Kind = transfer.EventBlobProgress
	case types.ProgressEventDone:
		e.Kind = transfer.EventBlobDone
		if !slices.Contains(r.Written, e.Blob) {
			r.Written = append(r.Written, e.Blob)
		}
	case types.ProgressEventSkipped:
		e.Kind = transfer.EventBlobReused
		if !slices.Contains(r.Written, e.Blob) {
			r.Reused = append(r.Reused, e.Blob)
		}
	default:
		return
	}
	c.event(e)
}

func (c *copier) event(e transfer.Event) {
	if c.o.Events != nil {
		c.o.Events(e)
	}
}
