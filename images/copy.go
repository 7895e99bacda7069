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

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// CopyOptions configure [Copy]. The zero value makes one attempt without a limit of time.
type CopyOptions struct {
	Registry Registry
	// Retries is how often a request is repeated if the registry is busy or fails, or the connection breaks.
	Retries int
	// Backoff is the first pause between attempts; it doubles, up to 30 seconds. Zero means one second.
	Backoff time.Duration
	// Timeout, unless zero, is the time for the whole copy.
	Timeout time.Duration
	// Stall ends an attempt in which nothing moves for this time; two minutes by default.
	Stall time.Duration
	// Temp is the directory for temporary files that are not beside an output; empty means the system's.
	Temp string
	// IfDigest, unless empty, is what the tags in registries must point to until they are written: a digest, or
	// [IfNone] for no image; otherwise the error is a [*ConflictError]. Tags are compared before anything is written,
	// and again just before each is written, since most registries cannot compare and set in one step.
	IfDigest string
	// Checked, unless nil, is the result of [CheckPush] with the same options. Its events go to the Events of the
	// check.
	Checked *PushCheck
	// Platform selects the image of an index that is written to a store; by default that for this machine, else any for
	// Linux.
	Platform v1.Platform
	// Attachments are written beside the image in every destination, in their order. Destinations that keep none are
	// refused before anything is written; see [ErrNoAttachments].
	Attachments []store.Attachment
	// Policy decides whether the source may be read; nil accepts only images that this module assembles.
	Policy *signature.Policy
	// Events, unless nil, receives the steps of the copy, from one goroutine at a time.
	Events func(Event)
}

// Result is what was written to one destination.
type Result struct {
	// Destination is the text of the destination.
	Destination string `json:"destination"`
	// Reference names the image: with its digest if the transport has digests.
	Reference string        `json:"reference"`
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	// Written are the blobs that were written, with the configuration, Reused those that were there already, and
	// Mounted those that the registry took from another of its repositories.
	Written []digest.Digest `json:"written,omitempty"`
	Reused  []digest.Digest `json:"reused,omitempty"`
	Mounted []digest.Digest `json:"mounted,omitempty"`
	// Blobs has all blobs of an image in a registry, and Traffic their sums. Of several tags in one repository the
	// first one has the transfers.
	Blobs   []Transfer `json:"blobs,omitempty"`
	Traffic *Traffic   `json:"traffic,omitempty"`
}

// Copy writes the image, or all images of an index, to all destinations, in four steps:
//
//  1. files and directories are staged beside their places, with the attachments, and stores receive the image without
//     its name;
//  2. registries receive blobs and manifests, and then the attachments;
//  3. registries receive the tags;
//  4. what was staged is put in place by renames, and stores receive the name.
//
// If a step fails, no later one begins, and no tag points to an incomplete image. After an error in the last two steps
// some destinations may be written: the results are those. Errors contain no credentials.
//
// A blob is read from the source only if the registry has it neither in the repository nor in another one that it can
// be mounted from ([BlobLocator]).
func Copy(ctx context.Context, src types.ImageReference, dests []Destination,
	o CopyOptions) (results []Result, err error) {
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	defer func() { err = redact.Error(err) }()
	if err := checkDistinct(dests); err != nil {
		return nil, err
	}
	if err := CheckIfDigest(o.IfDigest); err != nil {
		return nil, err
	}
	if err := checkAttachable(dests, o.Attachments); err != nil {
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
	options := c.o.push()
	options.Attach = c.attachPushed()
	p, err := registry.NewPusher(ctx, src, c.policy, targets, options, c.sys)
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

// run pushes the image. It returns the results of the destinations whose tags are written, by their text, also with an
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

// deadline returns the context with the Timeout of the options.
func (o CopyOptions) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.Timeout,
		fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
}

// prepared is a local destination that has the whole image, but not in its place.
type prepared interface {
	// Commit puts the image in its place.
	Commit(ctx context.Context) error
	// Discard removes what is left, also after Commit.
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
	if err := c.attachStaged(ctx, d, out); err != nil {
		return nil, err
	}
	return out, out.Finish(ctx)
}

// checkDistinct returns an error if two destinations are the same file, since the second image would replace the first.
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

// checkFormats returns an error if a destination cannot hold the image without converting it.
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
			return fmt.Errorf(
				"%s: an archive of docker holds the image of one platform, and this is an index of several", d)
		case (d.Transport == OCI || d.Transport == OCIArchive) && kind != v1.MediaTypeImageManifest &&
			kind != v1.MediaTypeImageIndex:
			return fmt.Errorf(
				"%s: an OCI layout holds OCI images only, and this is %s: take the oci format, or a destination of "+
					"docker://, dir: or docker-archive", d, kind)
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
	// attached are the layouts whose stages have the attachments.
	attached map[layouts.Place]bool
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
	sys, err := o.Registry.System(ctx, w.Dir())
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &copier{src: src, o: o, sys: sys, policy: policy, scratch: w}, nil
}

func (c *copier) close() error { return errors.Join(c.policy.Destroy(), c.scratch.Close()) }

// copyTo copies the image to a local reference of the library and fills in the result.
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
		// Only docker's archives need a conversion.
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

func (c *copier) event(e transfer.Event) { c.o.event(e) }

func (o CopyOptions) event(e transfer.Event) {
	if o.Events != nil {
		o.Events(e)
	}
}
