package libimage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// Copy copies an image, or all images of an index, to a reference of the library. Whether it may be read was decided when
// it was opened: no policy is asked. convert lets the library write another format than that of the image. Temporary
// files are in private. The result has neither Commit nor Discard.
func Copy(ctx context.Context, to types.ImageReference, from store.Reader, top v1.Descriptor, private string,
	convert bool, event func(store.Event)) (_ *transport.Filled, err error) {
	accept := &signature.Policy{Default: signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()}}
	progress := make(chan types.ProgressProperties, 16)
	finished := make(chan struct{})
	filled := &transport.Filled{}
	go func() {
		defer close(finished)
		for p := range progress {
			note(filled, p, event)
		}
	}()
	// By default the library makes directories in HOME, for a cache that works only with cgo.
	sys := &types.SystemContext{BlobInfoCacheDir: filepath.Join(private, "blob-info"), BigFilesTemporaryDir: private}
	text, err := Run(ctx, accept, to, Reference(from, top), &copy.Options{
		SourceCtx:          sys,
		DestinationCtx:     sys,
		ImageListSelection: copy.CopyAllImages,
		PreserveDigests:    !convert,
		Progress:           progress,
		ProgressInterval:   200 * time.Millisecond,
	})
	close(progress)
	<-finished
	if err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		return nil, err
	}
	filled.Digest, err = manifest.Digest(text)
	filled.MediaType = manifest.GuessMIMEType(text)
	return filled, err
}

// Run is the library's copy of an image that a policy accepts. It returns the manifest or index that was written.
func Run(ctx context.Context, policy *signature.Policy, to, from types.ImageReference,
	o *copy.Options) (text []byte, err error) {
	asked, err := signature.NewPolicyContext(policy)
	if err != nil {
		return nil, fmt.Errorf("signature policy: %w", err)
	}
	text, err = copy.Image(ctx, asked, to, from, o)
	return text, errors.Join(err, asked.Destroy())
}

// note adds a step of the library to the result.
func note(f *transport.Filled, p types.ProgressProperties, event func(store.Event)) {
	e := store.Event{Blob: p.Artifact.Digest, Size: p.Artifact.Size, Done: int64(p.Offset)}
	switch p.Event {
	case types.ProgressEventNewArtifact:
		e.Kind = store.EventBlobStart
	case types.ProgressEventRead:
		e.Kind = store.EventBlobProgress
	case types.ProgressEventDone:
		e.Kind = store.EventBlobDone
		if !slices.Contains(f.Written, e.Blob) {
			f.Written = append(f.Written, e.Blob)
		}
	case types.ProgressEventSkipped:
		e.Kind = store.EventBlobReused
		if !slices.Contains(f.Written, e.Blob) {
			f.Reused = append(f.Reused, e.Blob)
		}
	default:
		return
	}
	event(e)
}
