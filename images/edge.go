package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/libimage"
)

// edge is a destination that the containers library writes: a store of podman, docker-archive: or dir:.
type edge struct {
	d         Destination
	out       prepared
	result    Result
	committed bool
}

// prepared is a destination that has the whole image, but not in its place.
type prepared interface {
	// Commit puts the image in its place.
	Commit(ctx context.Context) error
	// Discard removes what is left, also after Commit.
	Discard() error
}

// fillEdge writes the image beside its place, or into a store without its name.
func (c *copier) fillEdge(ctx context.Context, e *edge) (_ prepared, err error) {
	if e.d.Transport == Store {
		return c.fillStore(ctx, e)
	}
	out, err := layouts.NewOutput(ctx, e.d.place())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	to, err := out.Reference()
	if err != nil {
		return nil, err
	}
	if err := c.copyTo(ctx, e, c.top, to); err != nil {
		return nil, err
	}
	return out, out.Finish(ctx)
}

// copyTo copies an image to a reference of the library and fills in the result. Whether the source may be read was
// decided when it was opened.
func (c *copier) copyTo(ctx context.Context, e *edge, top v1.Descriptor, to types.ImageReference) error {
	policy, err := signature.NewPolicyContext(&signature.Policy{
		Default: signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()}})
	if err != nil {
		return fmt.Errorf("signature policy: %w", err)
	}
	progress := make(chan types.ProgressProperties, 16)
	finished := make(chan struct{})
	r := &e.result
	*r = Result{Destination: e.d.String(), Reference: e.d.String()}
	go func() {
		defer close(finished)
		for p := range progress {
			c.progress(e.d, p, r)
		}
	}()
	text, err := copy.Image(ctx, policy, to, libimage.Reference(c.from, top), &copy.Options{
		SourceCtx:          c.sys,
		DestinationCtx:     c.sys,
		ImageListSelection: copy.CopyAllImages,
		// Only docker's archives need a conversion.
		PreserveDigests:  e.d.Transport != DockerArchive,
		Progress:         progress,
		ProgressInterval: 200 * time.Millisecond,
	})
	close(progress)
	<-finished
	if err = errors.Join(err, policy.Destroy()); err != nil {
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
	e := store.Event{Destination: d.String(), Blob: p.Artifact.Digest, Size: p.Artifact.Size, Done: int64(p.Offset)}
	switch p.Event {
	case types.ProgressEventNewArtifact:
		e.Kind = store.EventBlobStart
	case types.ProgressEventRead:
		e.Kind = store.EventBlobProgress
	case types.ProgressEventDone:
		e.Kind = store.EventBlobDone
		if !slices.Contains(r.Written, e.Blob) {
			r.Written = append(r.Written, e.Blob)
		}
	case types.ProgressEventSkipped:
		e.Kind = store.EventBlobReused
		if !slices.Contains(r.Written, e.Blob) {
			r.Reused = append(r.Reused, e.Blob)
		}
	default:
		return
	}
	c.event(e)
}
