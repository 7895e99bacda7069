package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// parallelBlobs is how many blobs of an image are transferred concurrently.
const parallelBlobs = 5

// pushedRepository is a repository that the image is pushed to, under one or several tags.
type pushedRepository struct {
	p       *Pusher
	repo    *repository
	mounts  *mounter
	targets []Target
	// attached is where attachments were written; nil before that.
	attached *Repository

	mu            sync.Mutex
	blobs         map[digest.Digest]pushedBlob
	manifests     int
	manifestBytes int64
}

// tagAll writes the tags of the repository's targets, and returns how many are written.
func (r *pushedRepository) tagAll(ctx context.Context) (int, error) {
	for i, t := range r.targets {
		if err := r.tag(ctx, t); err != nil {
			return i, r.failed(ctx, t, err)
		}
	}
	return len(r.targets), nil
}

// retry is [retry] with the options of the push. It reports each repetition.
func (r *pushedRepository) retry(ctx context.Context, blob digest.Digest, try func() error) error {
	again := func(attempt int, err error) {
		r.p.event(transfer.Event{Kind: transfer.EventRetry, Destination: r.targets[0].Text, Blob: blob,
			Attempt: attempt, Err: redact.Error(err)})
	}
	return retry(ctx, r.p.o.Client.Retries, r.p.remote.backoff(), again, try)
}

// fill writes the blobs and manifests. If a blob disappears before its manifest is written, everything is checked once
// more.
func (r *pushedRepository) fill(ctx context.Context) error {
	err := r.round(ctx, r.hasManifest, r.earlier)
	if !hasCode(err, "MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN") {
		return err
	}
	r.p.event(transfer.Event{Kind: transfer.EventRetry, Destination: r.targets[0].Text, Attempt: 1,
		Err: redact.Error(err)})
	r.mounts = &mounter{repo: r.repo} // a blob that was mounted may be the one that disappeared
	none := func(context.Context, pushedManifest) (bool, error) { return false, nil }
	return r.round(ctx, none, func(context.Context) map[digest.Digest]int64 { return nil })
}

// round writes what is missing. If the repository has a manifest, it has the manifest's blobs, and it has the blobs
// that earlier returns.
func (r *pushedRepository) round(ctx context.Context, has func(context.Context, pushedManifest) (bool, error),
	earlier func(context.Context) map[digest.Digest]int64) error {
	image := r.p.image
	there, err := has(ctx, image.top())
	if err != nil {
		return err
	}
	missing := map[digest.Digest]bool{}
	var manifests []pushedManifest
	if !there {
		before := earlier(ctx)
		for i, m := range image.manifests {
			known := false
			if i < len(image.manifests)-1 {
				if known, err = has(ctx, m); err != nil {
					return err
				}
			}
			if known {
				continue
			}
			manifests = append(manifests, m)
			for _, b := range m.blobs {
				if size, ok := before[b.Digest]; !ok || size != b.Size {
					missing[b.Digest] = true
				}
			}
		}
	}
	if err := r.bring(ctx, missing); err != nil {
		return err
	}
	for _, m := range manifests {
		if err := r.putManifest(ctx, m, m.digest.String(), nil); err != nil {
			return err
		}
	}
	return nil
}

// bring writes those blobs that may be missing and are not found. The others count as reused.
func (r *pushedRepository) bring(ctx context.Context, missing map[digest.Digest]bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelBlobs)
	if !r.p.src.HasThreadSafeGetBlob() {
		g.SetLimit(1)
	}
	for _, b := range r.p.image.blobs {
		if !missing[b.Digest] {
			r.note(b, pushedBlob{How: reused})
			continue
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return r.blob(ctx, b)
		})
	}
	return g.Wait()
}

// note records the result for a blob and reports it. A blob that was sent in an earlier round stays pushed.
func (r *pushedRepository) note(b v1.Descriptor, t pushedBlob) {
	t.Digest, t.Size = b.Digest, b.Size
	r.mu.Lock()
	if old, known := r.blobs[b.Digest]; !known || t.How == pushed || old.How == reused {
		r.blobs[b.Digest] = t
	}
	r.mu.Unlock()
	kind := map[how]transfer.EventKind{pushed: transfer.EventBlobDone, mounted: transfer.EventBlobMounted,
		reused: transfer.EventBlobReused}[t.How]
	r.p.event(transfer.Event{Kind: kind, Destination: r.targets[0].Text, Blob: b.Digest, Size: b.Size, Done: b.Size})
}

// blob makes sure that the repository has a blob: it has it already, mounts it from another repository, or receives it.
func (r *pushedRepository) blob(ctx context.Context, b v1.Descriptor) (err error) {
	there := false
	err = r.retry(ctx, b.Digest, func() error {
		there, err = r.repo.hasBlob(ctx, b)
		return err
	})
	if err != nil {
		return fmt.Errorf("blob %s: %w", b.Digest, err)
	}
	if there {
		r.note(b, pushedBlob{How: reused})
		return nil
	}
	event := transfer.Event{Kind: transfer.EventBlobStart, Destination: r.targets[0].Text, Blob: b.Digest, Size: b.Size}
	u := &blobUpload{repo: r.repo, src: r.p.src, blob: b}
	if from, ok := r.mounts.mount(ctx, u); ok {
		r.note(b, pushedBlob{How: mounted, From: from})
		return nil
	}
	r.p.event(event)
	event.Kind = transfer.EventBlobProgress
	reported := time.Now()
	if u.at == nil && b.Size <= wholeBlob {
		u.at, u.foreign = r.p.o.Check.take(r.repo)
	}
	u.moved = func(n int64) {
		if now := time.Now(); now.Sub(reported) >= progressInterval {
			reported, event.Done = now, n
			r.p.event(event)
		}
	}
	for {
		before := u.offset
		err := r.retry(ctx, b.Digest, func() error { return u.attempt(ctx) })
		if err == nil {
			r.note(b, pushedBlob{How: pushed})
			return nil
		}
		// An attempt that made progress does not count, as when reading.
		if ctx.Err() != nil || !transient(err) || u.offset-before < restartProgress || u.at == nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
}

// progressInterval is how often the progress of a blob is reported.
const progressInterval = 200 * time.Millisecond

// confirm reads the manifest back, to detect servers that accept everything and store nothing. It trusts the registry
// if the credentials allow no reading.
func (r *pushedRepository) confirm(ctx context.Context) error {
	top := r.p.image.top()
	var text []byte
	_, err := r.repo.get(ctx, "/manifests/"+top.digest.String(), request{accept: manifestTypes}, r.p.o.Client.Retries,
		func(resp *http.Response) (err error) {
			text, err = io.ReadAll(io.LimitReader(resp.Body, limit.MaxManifest+1))
			return err
		})
	if IsUnauthorized(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading back what was pushed: %w", err)
	}
	if digest.FromBytes(text) != top.digest {
		return fmt.Errorf("%w: %s@%s does not return what was pushed to it: it begins with %.80q", fault.ErrIntegrity,
			r.repo.name, top.digest, text)
	}
	return nil
}

// result returns the result of a target. The first target of the repository has the transfers; for the others all is
// reused.
func (r *pushedRepository) result(i int) PushResult {
	top := r.p.image.top()
	result := PushResult{Target: r.targets[i], Reference: r.repo.name.Name() + "@" + top.digest.String(),
		Digest: top.digest, MediaType: top.kind}
	if i == 0 {
		result.Manifests, result.ManifestBytes = r.manifests, r.manifestBytes
	}
	for _, b := range r.p.image.blobs {
		t := r.blobs[b.Digest]
		if i > 0 {
			t.How, t.From = reused, ""
		}
		result.Blobs = append(result.Blobs, t)
	}
	return result
}
