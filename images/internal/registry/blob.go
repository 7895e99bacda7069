package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// restartProgress is how many bytes a connection must have delivered for its failure not to count as an attempt.
const restartProgress = 1 << 20

// stallWatch cancels a request in which nothing moves.
type stallWatch struct {
	*webclient.Watch
	throttle *Throttle // limits the bytes of bodies
	release  func()    // ends the request's share of the throttle
}

// stop ends the watch, and the request's share of the throttle. It may be called again.
func (w *stallWatch) stop() {
	w.Stop()
	if w.release != nil {
		w.release()
	}
}

// watchedBody is the body of an answer, read under a stallWatch.
type watchedBody struct {
	body  io.ReadCloser
	watch *stallWatch
	up    *uploading // the body of the request; nil if it had none
}

func (b *watchedBody) Read(p []byte) (int, error) {
	p = b.watch.throttle.cut(p)
	n, err := b.watch.Read(b.body, p)
	b.watch.throttle.wait(b.watch.Context, n)
	if err != nil && b.watch.release != nil {
		b.watch.release() // the answer has been read, whenever it is closed
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.watch.stop()
	err := b.body.Close()
	// A registry may answer before it has read the whole request. An error of the source is not reported then.
	_ = b.up.close()
	return err
}

// blob opens a blob at an offset. After a broken connection the reader continues where it stopped, or reads again from
// the start.
func (p *repository) blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	b := &registryBlob{ctx: ctx, repo: p, d: d, retries: p.host.r.o.Retries, at: from, told: from}
	if err := b.connect(); err != nil {
		return nil, err
	}
	b.event(store.EventBlobStart)
	return b, nil
}

// registryBlob is a blob that is being read.
type registryBlob struct {
	ctx     context.Context
	repo    *repository
	d       v1.Descriptor
	retries int
	body    io.ReadCloser
	at      int64 // bytes that were delivered
	since   int64 // at, when the connection was opened
	told    int64 // at, when progress was last reported
	ended   bool
}

// connect asks for the rest of the blob.
func (b *registryBlob) connect() error {
	b.since = b.at
	var resp *http.Response
	q := request{path: "/blobs/" + b.d.Digest.String(), from: b.at, size: b.d.Size}
	err := b.repo.retry(b.ctx, b.retries, func() (err error) {
		resp, err = b.repo.sendOnce(b.ctx, q)
		return err
	})
	if err != nil {
		return err
	}
	b.body = resp.Body
	if resp.StatusCode == http.StatusPartialContent {
		if err := b.checkRange(resp.Header.Values("Content-Range")); err != nil {
			return errors.Join(err, resp.Body.Close())
		}
		return nil
	}
	if n := resp.ContentLength; n >= 0 && b.d.Size >= 0 && n != b.d.Size {
		return errors.Join(fmt.Errorf("%s: %w: size is %d bytes and not %d", b.d.Digest, fault.ErrIntegrity, n,
			b.d.Size), resp.Body.Close())
	}
	// The registry ignores the range. If it sends other content now, the digest will not match.
	if _, err := io.CopyN(io.Discard, b.body, b.at); err != nil {
		return errors.Join(verify.ShortRead(err), resp.Body.Close())
	}
	return nil
}

// checkRange returns an error if the answer is not the range that was requested.
func (b *registryBlob) checkRange(header []string) error {
	var first, last int64
	var total string
	if len(header) == 1 {
		if n, err := fmt.Sscanf(header[0], "bytes %d-%d/%s", &first, &last, &total); err == nil && n == 3 &&
			first == b.at && last == b.d.Size-1 && (total == "*" || total == fmt.Sprint(b.d.Size)) {
			return nil
		}
	}
	return Wrap(fmt.Errorf("%s: asked for the bytes from %d to %d, got Content-Range %.100q", b.d.Digest, b.at,
		b.d.Size-1, header))
}

func (b *registryBlob) Read(p []byte) (int, error) {
	for {
		n, err := b.body.Read(p)
		b.at += int64(n)
		b.progress()
		switch {
		case err == nil && n > 0:
			return n, nil
		case err == nil:
			continue
		case err == io.EOF && b.at >= b.d.Size, b.at == b.d.Size && b.ctx.Err() == nil:
			b.end() // nothing is missing, whatever failed after the last byte
			return n, io.EOF
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
		if err = b.restart(err); err != nil || n > 0 {
			return n, err
		}
	}
}

// restart connects again after an error that may be temporary, as long as attempts are left.
func (b *registryBlob) restart(cause error) error {
	for {
		if b.at-b.since >= restartProgress {
			b.retries = b.repo.host.r.o.Retries
		}
		if b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
		if b.retries <= 0 || !isTransient(cause) {
			return remoteError(fmt.Errorf("%s: after %d of %d bytes: %w", b.d.Digest, b.at, b.d.Size, cause))
		}
		b.retries--
		_ = b.body.Close()
		if err := b.repo.waitToRetry(b.ctx, b.repo.host.r.o.Retries-b.retries, cause, b.d.Digest); err != nil {
			return err
		}
		if cause = b.connect(); cause == nil {
			return nil
		}
	}
}

func (b *registryBlob) progress() {
	if b.at-b.told >= restartProgress {
		b.told = b.at
		b.event(store.EventBlobProgress)
	}
}

func (b *registryBlob) end() {
	if !b.ended {
		b.ended = true
		b.event(store.EventBlobDone)
	}
}

func (b *registryBlob) event(kind store.EventKind) { b.repo.event(kind, b.d, b.at) }

// event reports how much of a blob has been read.
func (p *repository) event(kind store.EventKind, d v1.Descriptor, done int64) {
	p.host.r.event(store.Event{Kind: kind, Destination: p.name.Name(), Blob: d.Digest, Size: d.Size, Done: done})
}

func (b *registryBlob) Close() error { return b.body.Close() }
