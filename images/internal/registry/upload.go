package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// hasBlob tells whether the repository has a blob. An answer without its size or digest does not count, since some
// servers answer every request with success. If the credentials allow no reading, the blob counts as missing.
func (p *repository) hasBlob(ctx context.Context, b v1.Descriptor) (bool, error) {
	resp, err := p.try(ctx, request{method: http.MethodHead, path: "/blobs/" + b.Digest.String(),
		success: []int{http.StatusOK}})
	switch {
	case err == nil:
		size, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64)
		return err == nil && size == b.Size ||
			err != nil && resp.Header.Get("Docker-Content-Digest") == b.Digest.String(), nil
	case hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed), IsUnauthorized(err):
		return false, nil
	}
	return false, err
}

// accepted are the statuses of success of requests in an upload.
var accepted = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}

// blobUpload is the upload of one blob. After a failure it continues with the bytes that the registry does not have, if
// the registry tells how many it has (distribution specification, "Pushing a blob in chunks").
type blobUpload struct {
	repo *repository
	blob v1.Descriptor
	// source opens the blob at an offset, so that the bytes before it need not be read again.
	source func(ctx context.Context, from int64) (io.ReadCloser, error)

	at      *url.URL // the URL of the upload session; nil if there is none
	foreign bool     // at is on another server
	offset  int64    // how many bytes the registry has
	resumed bool     // the bytes come from more than one request
	before  earlier
}

// earlier is what happened before an attempt at an upload.
type earlier uint8

const (
	nothing      earlier = iota // no blob was sent: the session, if there is one, is empty
	otherProcess                // another process has sent to the session, perhaps a part of the blob
	failure                     // an attempt failed: the registry may have a part of the blob, or all
)

// wholeBlob is the size in bytes up to which a blob is sent in the request that closes its upload. That saves a
// request, and after a failure the blob is sent again from its start.
const wholeBlob = 1_000_000

// Whether a registry takes a blob in one request: a POST with its digest (distribution specification, "POST then PUT" and
// "Single POST"). A registry that does not answers with an upload session. It is tried with one small blob.
const (
	onePostUnknown int32 = iota
	onePostAsked
	onePostTaken
	onePostRefused
)

// post sends the blob in the request that opens its upload, if the registry takes that, and tells whether it has the blob
// then. Otherwise a session may be open, to which nothing was sent.
func (u *blobUpload) post(ctx context.Context) (done bool, err error) {
	takes := &u.repo.host.onePost
	if takes.Load() != onePostTaken && (u.blob.Size > smallBlob || !takes.CompareAndSwap(onePostUnknown, onePostAsked)) {
		return false, nil
	}
	learned, first := onePostRefused, takes.Load() != onePostTaken
	if first {
		defer func() { takes.CompareAndSwap(onePostAsked, learned) }()
		content, err := u.readAll(ctx) // the source is read once, whatever the answer is
		if err != nil {
			learned = onePostUnknown
			return false, err
		}
		u.source = store.Bytes(content).Open
	}
	q := request{method: http.MethodPost, path: "/blobs/uploads/", query: url.Values{"digest": {u.blob.Digest.String()}}.Encode(),
		success: []int{http.StatusCreated, http.StatusAccepted}, slow: true, payload: u.payload(0),
		header: http.Header{"Content-Type": {"application/octet-stream"}}}
	resp, err := u.repo.try(ctx, q)
	switch {
	case refusesWhole(err), first && !isUnopened(err) && hasStatus(err, http.StatusUnauthorized, http.StatusForbidden):
		return false, nil // what is before the registry may refuse it
	case err != nil:
		return false, err
	case resp.StatusCode == http.StatusAccepted:
		if u.follow(resp) != nil {
			u.at = nil // the usual way says what is wrong
		}
		return false, nil
	}
	if err := u.checkStored(resp); err != nil {
		return false, err
	}
	if first {
		if there, err := u.repo.hasBlob(ctx, u.blob); !there || err != nil {
			return false, err // it has answered so, and kept nothing
		}
	}
	learned = onePostTaken
	return true, nil
}

// attempt makes one attempt at the upload:
//
//  1. Unless nothing was sent before, the registry is asked what it has.
//  2. A small blob is sent in one request, where the registry takes that; otherwise a session is opened, unless one can
//     be continued.
//  3. All bytes are sent in the request that closes the session, if the registry takes no others (noPatch), or if the
//     blob is small and nothing was sent before. Otherwise those that the registry does not have are sent in a request
//     before that. If it refuses one way, it gets the other.
func (u *blobUpload) attempt(ctx context.Context) error {
	before := u.before
	u.before = failure
	if before == failure {
		// The blob may have arrived although the answer was lost.
		if there, err := u.repo.hasBlob(ctx, u.blob); there || err != nil {
			return err
		}
	}
	if before != nothing {
		if err := u.ask(ctx); err != nil {
			return err
		}
	}
	if before == nothing && u.at == nil && u.blob.Size <= wholeBlob {
		if done, err := u.post(ctx); done || err != nil {
			return err
		}
	}
	noPatch := &u.repo.host.noPatch
	if u.at == nil || u.offset > 0 && noPatch.Load() {
		if err := u.openSession(ctx); err != nil {
			return err
		}
	}
	switch {
	case noPatch.Load():
		return u.classify(u.finish(ctx, u.payload(0)))
	case before == nothing && u.blob.Size <= wholeBlob:
		err := u.finish(ctx, u.payload(0))
		if !refusesWhole(err) {
			return u.classify(err)
		}
		if err := u.openSession(ctx); err != nil {
			return err
		}
	}
	if u.offset < u.blob.Size {
		err := u.send(ctx)
		if !isUnopened(err) && hasStatus(err, http.StatusMethodNotAllowed, http.StatusNotImplemented) {
			// It takes each blob in one request only. The session has nothing, unless it is of an earlier process.
			noPatch.Store(true)
			if u.offset > 0 {
				if err := u.openSession(ctx); err != nil {
					return err
				}
			}
			return u.classify(u.finish(ctx, u.payload(0)))
		}
		if err != nil {
			return u.classify(err)
		}
	}
	return u.classify(u.finish(ctx, nil))
}

// refusesWhole tells whether the answer to a blob in one request means that a registry has removed the upload session that
// a check has begun, or accepts no blob in one request.
func refusesWhole(err error) bool {
	var status *StatusError
	return !isUnopened(err) && errors.As(err, &status) && status.Status >= 400 &&
		!webclient.IsTransientStatus(status.Status) && !status.unauthorized()
}

func (u *blobUpload) openSession(ctx context.Context) error {
	q := request{method: http.MethodPost, path: "/blobs/uploads/", success: []int{http.StatusAccepted},
		header: idempotent}
	resp, err := u.repo.try(ctx, q)
	if err != nil {
		return err
	}
	u.offset, u.resumed = 0, false
	if err := u.follow(resp); err != nil {
		return err
	}
	u.storeProgress()
	return nil
}

// idempotent marks a request that net/http may repeat if its connection was closed. The header is not sent.
var idempotent = http.Header{"X-Idempotency-Key": nil}

// follow continues the upload at the Location of an answer.
func (u *blobUpload) follow(resp *http.Response) (err error) {
	u.at, u.foreign, err = u.repo.location(resp)
	return err
}

// next continues the upload at the Location of an answer, or at the same address if it has none.
func (u *blobUpload) next(resp *http.Response) error {
	if resp.Header.Get("Location") == "" {
		return nil
	}
	return u.follow(resp)
}

// send sends the bytes that the registry does not have.
func (u *blobUpload) send(ctx context.Context) error {
	from := u.offset
	q := request{method: http.MethodPatch, url: u.at, foreign: u.foreign, success: accepted, payload: u.payload(from)}
	if from > 0 {
		q.header = http.Header{"Content-Range": {fmt.Sprintf("%d-%d", from, u.blob.Size-1)}}
	}
	resp, err := u.repo.try(ctx, q)
	if err != nil {
		return err
	}
	u.offset = u.blob.Size
	return u.next(resp)
}

// payload is the body of a request with the blob from an offset on.
func (u *blobUpload) payload(from int64) *payload {
	return &payload{
		open: func(ctx context.Context) (io.ReadCloser, error) { return u.open(ctx, from) },
		size: u.blob.Size - from,
		kind: "application/octet-stream",
	}
}

// open reads the blob from an offset. Only from the start it is compared with its digest; the registry compares it
// always.
func (u *blobUpload) open(ctx context.Context, from int64) (io.ReadCloser, error) {
	r, err := u.source(ctx, from)
	if err != nil {
		return nil, &unopenedError{err}
	}
	var v io.Reader = ctxio.Reader{Ctx: ctx, R: r}
	if from == 0 && !verify.Verifies(r, u.blob.Digest, u.blob.Size) {
		v = verify.NewReader(v, u.blob.Digest, u.blob.Size)
	}
	return struct {
		io.Reader
		io.Closer
	}{v, r}, nil
}

// readAll reads a small blob.
func (u *blobUpload) readAll(ctx context.Context) ([]byte, error) {
	body, err := u.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(body, u.blob.Size+1))
	return content, errors.Join(err, body.Close())
}

// unopenedError is the error of a source that cannot be opened. It may be an answer of another registry.
type unopenedError struct{ error }

func (e *unopenedError) Unwrap() error { return e.error }

func isUnopened(err error) bool {
	var unopened *unopenedError
	return errors.As(err, &unopened)
}

// cancel removes an upload session to which nothing has been sent. It need not succeed: registries remove uploads that
// are never finished, and some cannot cancel them.
func (u *blobUpload) cancel(ctx context.Context) {
	if u.at == nil || u.offset > 0 {
		return
	}
	u.forget()
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	q := request{method: http.MethodDelete, url: u.at, foreign: u.foreign, success: accepted}
	_, _ = u.repo.try(ctx, q)
}

// finish closes the upload, with the whole blob unless that is nil. The registry compares the digest.
func (u *blobUpload) finish(ctx context.Context, whole *payload) error {
	to := *u.at
	query := to.Query()
	query.Set("digest", u.blob.Digest.String())
	to.RawQuery = query.Encode()
	q := request{method: http.MethodPut, url: &to, foreign: u.foreign, success: accepted, slow: true, payload: whole,
		header: http.Header{"Content-Type": {"application/octet-stream"}}}
	resp, err := u.repo.try(ctx, q)
	if err != nil {
		return err
	}
	return u.checkStored(resp)
}

// checkStored returns an error if the registry says that it has stored something else.
func (u *blobUpload) checkStored(resp *http.Response) error {
	if said := resp.Header.Get("Docker-Content-Digest"); said != "" && strings.HasPrefix(said,
		"sha256:") && said != u.blob.Digest.String() {
		return fmt.Errorf("%w: the registry has stored %.100q in place of %s", fault.ErrIntegrity, said, u.blob.Digest)
	}
	return nil
}

// classify decides whether an upload starts again after an error: the registry no longer has the session, or what it
// has is not the blob.
func (u *blobUpload) classify(err error) error {
	switch {
	case isUnopened(err):
		return err
	case hasStatus(err, http.StatusRequestedRangeNotSatisfiable):
		return &againError{err} // the next attempt asks how many bytes the registry has
	case hasStatus(err, http.StatusNotFound), hasCode(err, "BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID",
		"DIGEST_INVALID"),
		u.resumed && hasStatus(err, http.StatusBadRequest):
		u.at = nil
		return &againError{err}
	}
	return err
}

// againError is an error after which another attempt is made, whatever its kind.
type againError struct{ error }

func (e *againError) Unwrap() error { return e.error }

// ask asks the registry how many bytes it has. If it does not answer that, the upload starts again.
func (u *blobUpload) ask(ctx context.Context) error {
	if u.at == nil {
		return nil
	}
	resp, err := u.repo.try(ctx, request{url: u.at, foreign: u.foreign, success: accepted})
	if err != nil && (ctx.Err() != nil || isTransient(err)) {
		return err
	}
	if err != nil {
		u.at = nil // an address that an earlier process has stored may be of no use
		return nil
	}
	last, ok := strings.CutPrefix(strings.TrimPrefix(resp.Header.Get("Range"), "bytes="), "0-")
	n, err := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil || n < 0 || n >= u.blob.Size {
		u.at = nil
		return nil
	}
	// "0-0" is also the answer for no bytes.
	if u.offset = n + 1; n == 0 {
		u.offset = 0
	}
	u.resumed = true
	if err := u.next(resp); err != nil {
		return err
	}
	u.storeProgress()
	return nil
}

// begunUpload is an upload session to which nothing has been sent.
type begunUpload struct {
	blobUpload
	since time.Time
}

// beginsFor is how long such a session is used: registries remove sessions that are idle.
const beginsFor = time.Minute

// Begin opens an upload session, to find out whether the repository can be written to. The first small blob is sent in
// it; [Repository.Discard] cancels it.
func (r *Repository) Begin(ctx context.Context) error {
	u := &begunUpload{blobUpload{repo: r.repo}, time.Now()}
	if err := r.retry(ctx, func() error { return u.openSession(ctx) }); err != nil {
		return remoteError(err)
	}
	r.begun.Store(u)
	return nil
}

// takeBegun returns the URL of an open upload session, once; nil if there is none.
func (r *Repository) takeBegun() (at *url.URL, foreign bool) {
	u := r.begun.Load()
	if u == nil || time.Since(u.since) > beginsFor || !r.begun.CompareAndSwap(u, nil) {
		return nil, false
	}
	return u.at, u.foreign
}

// Discard cancels an upload session that was not used. There is nothing else to discard: a registry has what is written
// at once.
func (r *Repository) Discard() error {
	if u := r.begun.Swap(nil); u != nil {
		u.cancel(context.Background())
	}
	return nil
}

// Uploads keeps where the uploads of blobs continue. It is safe for concurrent use. A location may have a secret of
// the registry, which allows to write to the upload.
type Uploads interface {
	// Load returns the location of the upload of a blob to a repository, HOST/PATH.
	Load(repository string, d digest.Digest) (location string, ok bool)
	// Save stores the location of an upload. It replaces the location stored before.
	Save(repository string, d digest.Digest, location string)
	// Forget removes a location.
	Forget(repository string, d digest.Digest)
}

// keptUpload is the size in bytes from which the upload of a blob is kept.
const keptUpload = 8 << 20

// keeps returns the store of uploads if the blob is one of those that are kept; nil if not.
func (u *blobUpload) keeps() Uploads {
	if u.blob.Size < keptUpload {
		return nil
	}
	return u.repo.host.r.o.Uploads
}

// restore continues the upload session of an earlier process; the first attempt finds out whether the registry still
// has it. The stored location is not trusted: it must belong to this repository of this registry.
func (u *blobUpload) restore() {
	kept := u.keeps()
	if kept == nil || u.at != nil {
		return
	}
	text, ok := kept.Load(u.repo.name.Name(), u.blob.Digest)
	if !ok {
		return
	}
	at := &url.URL{Scheme: "https", Host: u.repo.host.address}
	if u.repo.host.plain {
		if stored, err := url.Parse(text); err == nil && stored.Scheme == "http" {
			at.Scheme = "http"
		}
	}
	answer := &http.Response{Header: http.Header{"Location": {text}}, Request: &http.Request{URL: at}}
	var err error
	if u.at, u.foreign, err = u.repo.location(answer); err != nil || !u.isOwn() {
		u.at = nil
		kept.Forget(u.repo.name.Name(), u.blob.Digest)
		return
	}
	u.before = otherProcess
}

// isOwn tells whether the upload session is one of this repository, at this registry.
func (u *blobUpload) isOwn() bool {
	return !u.foreign && strings.HasPrefix(path.Clean(u.at.Path), "/v2/"+u.repo.path+"/blobs/uploads/")
}

// storeProgress stores where the upload continues.
func (u *blobUpload) storeProgress() {
	if kept := u.keeps(); kept != nil && u.at != nil && u.isOwn() {
		kept.Save(u.repo.name.Name(), u.blob.Digest, u.at.String())
	}
}

// forget removes what was stored.
func (u *blobUpload) forget() {
	if kept := u.keeps(); kept != nil {
		kept.Forget(u.repo.name.Name(), u.blob.Digest)
	}
}
