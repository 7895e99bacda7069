package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// hasBlob tells whether the repository has a blob. Only who says its length, or at least its digest, is believed: there
// are servers that say yes to everything. Who may not read may write all the same.
func (p *repository) hasBlob(ctx context.Context, b v1.Descriptor) (bool, error) {
	resp, err := p.try(ctx, request{method: http.MethodHead, success: []int{http.StatusOK}}, "/blobs/"+b.Digest.String(), "")
	switch {
	case err == nil:
		size, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64)
		return err == nil && size == b.Size || err != nil && resp.Header.Get("Docker-Content-Digest") == b.Digest.String(), nil
	case hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed), IsUnauthorized(err):
		return false, nil
	}
	return false, err
}

// accepted are the statuses of a request of an upload that went well.
var accepted = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}

// blobUpload is the upload of one blob. What the registry has of it is not sent again after a failure, if the registry
// can tell how much that is (distribution specification, "Pushing a blob in chunks").
type blobUpload struct {
	repo *repository
	src  types.ImageSource
	blob v1.Descriptor
	// moved is told how much has been sent.
	moved func(int64)

	at      *url.URL // where it goes on; nil if it has not begun
	foreign bool     // that is another server
	offset  int64    // what the registry has
	failed  bool     // an attempt was made before this one
	resumed bool     // the bytes come from more than one request
}

// wholeBlob is up to which size a blob is sent by the request that closes its upload: one request less, and what breaks off
// is sent from its beginning.
const wholeBlob = 256 << 10

// attempt tries to bring the blob there.
func (u *blobUpload) attempt(ctx context.Context) error {
	if u.failed {
		// A lost answer is not a lost blob.
		if there, err := u.repo.hasBlob(ctx, u.blob); there || err != nil {
			return err
		}
		if err := u.ask(ctx); err != nil {
			return err
		}
	}
	first := !u.failed
	u.failed = true
	if u.at == nil {
		if err := u.begin(ctx); err != nil {
			return err
		}
	}
	if first && u.blob.Size <= wholeBlob {
		err := u.finish(ctx, u.payload(0))
		var status *StatusError
		if !errors.As(err, &status) || status.Status < 400 || transientStatus(status.Status) || status.unauthorized() {
			return u.classify(err)
		}
		// The registry has forgotten an upload that was begun by a check, or takes no blob in one piece.
		if err := u.begin(ctx); err != nil {
			return err
		}
	}
	if u.offset < u.blob.Size {
		if err := u.send(ctx); err != nil {
			return u.classify(err)
		}
	}
	return u.classify(u.finish(ctx, nil))
}

// begin asks for a place to upload to.
func (u *blobUpload) begin(ctx context.Context) error {
	q := request{method: http.MethodPost, success: []int{http.StatusAccepted}, header: idempotent}
	resp, err := u.repo.try(ctx, q, "/blobs/uploads/", "")
	if err != nil {
		return err
	}
	u.offset, u.resumed = 0, false
	return u.follow(resp)
}

// idempotent tells the library that a request may be repeated when its connection turns out to be closed; it is not sent.
var idempotent = http.Header{"X-Idempotency-Key": nil}

// follow goes on where an answer says.
func (u *blobUpload) follow(resp *http.Response) (err error) {
	u.at, u.foreign, err = u.repo.location(resp)
	return err
}

// next is follow for answers that need not say where to go on.
func (u *blobUpload) next(resp *http.Response) error {
	if resp.Header.Get("Location") == "" {
		return nil
	}
	return u.follow(resp)
}

// send sends what the registry lacks.
func (u *blobUpload) send(ctx context.Context) error {
	from := u.offset
	q := request{method: http.MethodPatch, url: u.at, foreign: u.foreign, success: accepted, payload: u.payload(from)}
	if from > 0 {
		q.header = http.Header{"Content-Range": {fmt.Sprintf("%d-%d", from, u.blob.Size-1)}}
	}
	resp, err := u.repo.try(ctx, q, "", "")
	if err != nil {
		return err
	}
	u.offset = u.blob.Size
	return u.next(resp)
}

// payload is the blob from an offset on.
func (u *blobUpload) payload(from int64) *payload {
	return &payload{
		open:  func(ctx context.Context) (io.ReadCloser, error) { return u.open(ctx, from) },
		size:  u.blob.Size - from,
		kind:  "application/octet-stream",
		moved: func(n int64) { u.moved(from + n) },
	}
}

// open reads the blob from an offset. All of it is read and compared with its digest, whatever the registry has already.
func (u *blobUpload) open(ctx context.Context, from int64) (io.ReadCloser, error) {
	r, _, err := u.src.GetBlob(ctx, types.BlobInfo{Digest: u.blob.Digest, Size: u.blob.Size, MediaType: u.blob.MediaType}, none.NoCache)
	if err != nil {
		return nil, err
	}
	v := verify.NewReader(ctxio.Reader{Ctx: ctx, R: r}, u.blob.Digest, u.blob.Size)
	if _, err := io.CopyN(io.Discard, v, from); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{v, r}, nil
}

// finish closes the upload, with the whole blob unless that is nil. The registry compares the digest.
func (u *blobUpload) finish(ctx context.Context, whole *payload) error {
	to := *u.at
	query := to.Query()
	query.Set("digest", u.blob.Digest.String())
	to.RawQuery = query.Encode()
	q := request{method: http.MethodPut, url: &to, foreign: u.foreign, success: accepted, slow: true, payload: whole, header: http.Header{"Content-Type": {"application/octet-stream"}}}
	resp, err := u.repo.try(ctx, q, "", "")
	if err != nil {
		return err
	}
	if said := resp.Header.Get("Docker-Content-Digest"); said != "" && strings.HasPrefix(said, "sha256:") && said != u.blob.Digest.String() {
		return fmt.Errorf("%w: the registry has stored %.100q in place of %s", fault.ErrIntegrity, said, u.blob.Digest)
	}
	return nil
}

// classify decides what an error means for the upload: one that the registry does not know any more, or in which something
// went wrong on the way, begins again.
func (u *blobUpload) classify(err error) error {
	switch {
	case hasStatus(err, http.StatusRequestedRangeNotSatisfiable):
		return &againError{err} // the registry has more or less than was thought, and will tell
	case hasStatus(err, http.StatusNotFound), hasCode(err, "BLOB_UPLOAD_UNKNOWN", "BLOB_UPLOAD_INVALID", "DIGEST_INVALID"),
		u.resumed && hasStatus(err, http.StatusBadRequest):
		u.at = nil
		return &againError{err}
	}
	return err
}

// ask finds out how much of the upload has arrived. If the registry cannot tell, the upload begins again.
func (u *blobUpload) ask(ctx context.Context) error {
	if u.at == nil {
		return nil
	}
	resp, err := u.repo.try(ctx, request{url: u.at, foreign: u.foreign, success: accepted}, "", "")
	var status *StatusError
	if errors.As(err, &status) && !transientStatus(status.Status) || errors.Is(err, fault.ErrIntegrity) {
		u.at = nil
		return nil
	}
	if err != nil {
		return err
	}
	last, ok := strings.CutPrefix(strings.TrimPrefix(resp.Header.Get("Range"), "bytes="), "0-")
	n, err := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil || n < 0 || n >= u.blob.Size {
		u.at = nil
		return nil
	}
	// "0-0" is what there is to say of nothing too.
	if u.offset = n + 1; n == 0 {
		u.offset = 0
	}
	u.resumed = true
	return u.next(resp)
}
