package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// Repository reads and writes the manifests and blobs of one repository of a registry. It is safe for concurrent use.
// Errors are of the class [fault.ErrRegistry], or about content.
type Repository struct {
	repo  *repository
	cache *blobcache.Cache
	// source tells that an image was read from it.
	source bool
	api    atomic.Int32 // whether it has the referrers API: apiUnknown, apiThere or apiMissing
	tags   sync.Map     // of a tag that was written: its *tagUpdate
	sent   sync.Map     // the digests of blobs that are there
	mounts mounter
	// empty tells that the registry has said it has no such repository. Some say so of one without tags, in which a run
	// that was interrupted may have left blobs.
	empty atomic.Bool

	begun atomic.Pointer[begunUpload]

	deleting sync.Once
	deleter  *repository // the same, with a token for deleting
}

// Repository returns the repository with a name HOST[:PORT]/PATH; no request is sent. The same name gives the same
// repository. Mirrors are only for reading images, so that none is used. The error is of the class [fault.ErrInvalid]
// for a name with a tag or digest, without a host, or that cannot be parsed, and of the class [fault.ErrRegistry] for a
// registry that registries.conf blocks.
func (r *Client) Repository(name string) (*Repository, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil || !reference.IsNameOnly(named) || !strings.HasPrefix(name, reference.Domain(named)+"/") {
		return nil, fmt.Errorf("%w: %.300q is no repository HOST/PATH", fault.ErrInvalid, redact.Text(name))
	}
	r.writtenLock.Lock()
	defer r.writtenLock.Unlock()
	if known := r.written[named.Name()].get(); known != nil {
		return known, nil
	}
	repo, err := r.pushTo(named)
	if err != nil {
		return nil, redact.Error(Wrap(err))
	}
	to := &Repository{repo: repo, mounts: mounter{repo: repo}}
	if len(r.written) >= max(maxRepositories, r.writtenMost) {
		r.forgetUnused()
	}
	r.written[named.Name()] = writtenRepository{to, weak.Make(to)}
	return to, nil
}

// writtenRepository is a repository that is remembered by its name.
type writtenRepository struct {
	known *Repository // nil if nothing is known of it that another use would have to find out
	used  weak.Pointer[Repository]
}

// get returns the repository; nil if it is not remembered.
func (w writtenRepository) get() *Repository {
	if w.known != nil {
		return w.known
	}
	return w.used.Value()
}

// forgetUnused forgets the repositories that are not used and of which nothing is known. Of a list of very many images
// that are absent each is mostly in one of its own.
func (r *Client) forgetUnused() {
	for name, w := range r.written {
		if w.known != nil && w.known.isNew() {
			w.known = nil
			r.written[name] = w
		}
		if w.get() == nil {
			delete(r.written, name)
		}
	}
	r.writtenMost = 2 * len(r.written)
}

// isNew tells whether nothing was written to the repository, and nothing found out about it.
func (r *Repository) isNew() bool {
	known := r.api.Load() != apiUnknown || r.begun.Load() != nil
	for _, m := range []*sync.Map{&r.tags, &r.sent} {
		m.Range(func(any, any) bool {
			known = true
			return false
		})
	}
	return !known
}

// artifactManifest is the media type of manifests with a subject of a draft of the image specification, which
// registries still have.
const artifactManifest = "application/vnd.oci.artifact.manifest.v1+json"

var repositoryTypes = append(slices.Clone(manifestTypes), artifactManifest)

// Manifest returns the text and media type of the manifest with a tag or a digest. The error is [fs.ErrNotExist] if the
// registry has no such manifest or repository.
func (r *Repository) Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error) {
	text, mediaType, err = r.repo.cachedManifest(ctx, r.cache, name, repositoryTypes, r.retries())
	if err != nil {
		return nil, "", notFoundError(err)
	}
	return text, mediaType, nil
}

func (r *Repository) retries() int { return r.repo.host.r.o.Retries }

// Blob opens a blob at an offset. From the start, the reader fails at its end if the digest or the size differs from
// the descriptor; else only if the size does.
func (r *Repository) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	if err := checkBlob(d); err != nil {
		return nil, err
	}
	if from < 0 || from > d.Size {
		return nil, fmt.Errorf("%s: %w: offset %d of %d bytes", d.Digest, fault.ErrInvalid, from, d.Size)
	}
	if from > 0 && from == d.Size {
		return http.NoBody, nil // a registry answers that it has no such range
	}
	body, cached := r.cache.Open(ctx, d.Digest, d.Size)
	switch {
	case cached && from > 0:
		return store.Skip(func() (io.ReadCloser, error) { return body, nil }, from)
	case cached:
		r.repo.event(store.EventBlobReused, d, d.Size)
	default:
		fetched, err := r.repo.blob(ctx, d, from)
		if err != nil {
			return nil, notFoundError(err)
		}
		if from > 0 {
			return fetched, nil
		}
		body = r.cache.Tee(d.Digest, d.Size, fetched)
	}
	return verify.Body(ctx, body, d.Digest, d.Size), nil
}

// checkBlob returns an error for a malformed digest or size.
func checkBlob(d v1.Descriptor) error {
	if err := verify.Digest(d.Digest); err != nil {
		return err
	}
	if d.Size < 0 {
		return fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
	}
	return nil
}

// retry repeats a request as often as the options of the client say.
func (r *Repository) retry(ctx context.Context, try func() error) error {
	return r.repo.retry(ctx, r.retries(), try)
}

// smallBlob is the size in bytes up to which sending a blob takes less than asking whether it is there.
const smallBlob = 16 << 10

// asksFor tells whether the registry is asked for a blob before it is sent. In a repository that the registry does not
// know only those are looked for that take much longer to send than to ask for: see [Repository.empty].
func (r *Repository) asksFor(d v1.Descriptor, always bool) bool {
	switch {
	case always:
		return true
	case r.empty.Load():
		return d.Size >= keptUpload
	}
	return d.Size > smallBlob || d.Digest == v1.DescriptorEmptyJSON.Digest
}

// WriteBlob sends a blob unless the repository has it; of small ones only the empty configuration is asked for, unless
// the content says otherwise. It is opened once for each attempt: after an interruption only the rest is read, and then
// the registry alone compares the digest. from is the repository that the blob was mounted from; empty if it was not.
//
// A blob that another repository of the same registry has, as far as this client or its source knows, is mounted and
// not sent; one that is just being sent to another repository is waited for.
func (r *Repository) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (from string, err error) {
	known := r.repo.host.known
	done, err := known.startWriting(ctx, r.Name(), d.Digest)
	if err != nil {
		return "", err
	}
	if known.mounts() {
		c.Repositories = append(known.repositoriesOf(d.Digest), c.Repositories...)
	} else {
		c.Repositories = nil
	}
	var sent atomic.Bool
	there := false // also after a panic: others that wait for the blob go on
	defer func() { done(there, len(c.Repositories) > 0 && (sent.Load() || from != ""), from != "") }()
	open := c.Open
	c.Open = func(ctx context.Context, at int64) (io.ReadCloser, error) {
		sent.Store(true)
		return open(ctx, at)
	}
	from, err = r.writeBlob(ctx, d, c)
	there = err == nil
	return from, err
}

// writeBlob writes a blob that nothing else writes.
func (r *Repository) writeBlob(ctx context.Context, d v1.Descriptor, c store.Content) (from string, err error) {
	if err := checkBlob(d); err != nil {
		return "", err
	}
	_, there := r.sent.Load(d.Digest)
	if !there && r.asksFor(d, c.Ask) {
		if there, err = r.HasBlob(ctx, d); err != nil {
			return "", err
		}
	}
	u := &blobUpload{repo: r.repo, blob: d, source: c.Open}
	if there {
		u.forget()
		r.sent.Store(d.Digest, true)
		return "", nil
	}
	u.restore()
	if u.at == nil {
		if from, ok := r.mounts.mount(ctx, u, c.Repositories); ok {
			r.sent.Store(d.Digest, true)
			return from, nil
		}
	}
	if u.at == nil && d.Size <= wholeBlob {
		u.at, u.foreign = r.takeBegun()
	}
	for {
		before := u.offset
		err := r.retry(ctx, func() error { return u.attempt(ctx) })
		if err == nil {
			u.forget()
			r.sent.Store(d.Digest, true)
			return "", nil
		}
		// An attempt that made progress does not count, as for images.
		if ctx.Err() != nil || !isTransient(err) || u.offset-before < restartProgress || u.at == nil {
			if isUnopened(err) {
				u.cancel(ctx)
			}
			return "", wrapBlob(d, r.repo.classifyRefusal(d.Digest, d.Size, err))
		}
	}
}

func wrapBlob(d v1.Descriptor, err error) error {
	if err == nil {
		return nil
	}
	return remoteError(fmt.Errorf("blob %s: %w", d.Digest, err))
}

// putManifest sends a manifest under a tag or its digest, and returns the header of the answer.
func (r *Repository) putManifest(ctx context.Context, name string, text []byte, mediaType string,
	only http.Header) (header http.Header, err error) {
	for _, pause := range unseenPauses {
		header, err = r.putOnce(ctx, name, text, mediaType, only)
		if !unseenBlob(err) {
			return header, err
		}
		if err := webclient.Sleep(ctx, webclient.Jitter(pause)); err != nil {
			return nil, err
		}
	}
	return r.putOnce(ctx, name, text, mediaType, only)
}

// unseenPauses are the pauses before a manifest is written again whose blobs the registry does not see: a short one,
// and one that is as long as the nodes of a registry may take to show one another's blobs.
var unseenPauses = []time.Duration{100 * time.Millisecond, time.Second}

// unseenBlob tells whether a registry has refused a manifest for a blob that it does not have. The blobs have been
// written; but while another client writes the same blob (signatures can have equal payloads), some registries do not
// find it, or only a part of it.
func unseenBlob(err error) bool {
	return hasCode(err, "MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN")
}

// putOnce is like putManifest, and does not write the manifest again if the registry does not see its blobs.
func (r *Repository) putOnce(ctx context.Context, name string, text []byte, mediaType string,
	only http.Header) (header http.Header, err error) {
	q := request{method: http.MethodPut, path: "/manifests/" + name, success: accepted,
		payload: bytesPayload(text, mediaType), header: maps.Clone(idempotent)}
	maps.Copy(q.header, only)
	err = r.retry(ctx, func() error {
		resp, err := r.repo.try(ctx, q)
		if err != nil {
			return err
		}
		header = resp.Header
		if said := digest.Digest(header.Get("Docker-Content-Digest")); verify.Digest(said) == nil &&
			said != digest.FromBytes(text) {
			return fmt.Errorf("%w: the registry has stored %s in place of %s", fault.ErrIntegrity, said,
				digest.FromBytes(text))
		}
		return nil
	})
	if err != nil {
		refused := remoteError(fmt.Errorf("manifest %s: %w", name,
			r.repo.classifyRefusal(digest.FromBytes(text), int64(len(text)), err)))
		if unseenBlob(err) {
			r.sent.Clear() // the registry no longer has one of the blobs
			r.empty.Store(false)
			r.repo.host.onePost.Store(onePostRefused) // or has answered 201, and did not take it
			refused = ofClass(store.ErrIncomplete, refused)
		}
		return nil, refused
	}
	return header, nil
}

// Name returns HOST/PATH.
func (r *Repository) Name() string { return r.repo.name.Name() }

// checkTag returns an error for what is no tag. Not every registry refuses a digest of something else as a tag.
func checkTag(tag string) error {
	if !anchoredTag().MatchString(tag) {
		return fmt.Errorf("%w: %.140q is no tag", fault.ErrInvalid, tag)
	}
	return nil
}

// Head returns the digest, media type and size of the manifest with a tag or a digest, by a request without the
// manifest where the registry answers that with the digest. The error is [fs.ErrNotExist] if the registry has no such
// manifest or repository, and also if it refuses the credentials: registries hide repositories that are not there.
func (r *Repository) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	var is v1.Descriptor
	q := request{method: http.MethodHead, path: "/manifests/" + name, accept: repositoryTypes}
	err := r.retry(ctx, func() error {
		resp, err := r.repo.try(ctx, q)
		if err != nil {
			return err
		}
		is.Digest = digest.Digest(resp.Header.Get("Docker-Content-Digest"))
		is.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if is.Size, err = strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err != nil {
			is.Size = -1
		}
		return nil
	})
	if err == nil && verify.Digest(is.Digest) == nil && is.Size >= 0 && is.MediaType != "" {
		return is, nil
	}
	if hasStatus(err, http.StatusNotFound) || IsUnauthorized(err) {
		return is, ofClass(fs.ErrNotExist, remoteError(err))
	}
	if err != nil && !hasStatus(err, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotImplemented) {
		return is, remoteError(err)
	}
	text, mediaType, err := r.Manifest(ctx, name)
	switch {
	case IsUnauthorized(err):
		err = ofClass(fs.ErrNotExist, err)
	case hasCode(err, "NAME_INVALID"): // an answer to HEAD has no code
		err = remoteError(r.repo.classifyRefusal("", 0, err))
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}, err
}

// Head returns the descriptor of an image that is read: in the first mirror that has it, or in the registry. The error
// is that of [Repository.Head].
func (r *Client) Head(ctx context.Context, named reference.Named) (is v1.Descriptor, err error) {
	err = r.ask(ctx, named, func(from endpoint, _ bool) error {
		name, err := from.name()
		if err != nil {
			return err
		}
		is, err = (&Repository{repo: from.repo, source: true}).Head(ctx, name)
		return err
	})
	return is, err
}

// HasBlob tells whether the repository has a blob of that digest and size.
func (r *Repository) HasBlob(ctx context.Context, d v1.Descriptor) (there bool, err error) {
	if err := verify.Digest(d.Digest); err != nil {
		return false, err
	}
	err = r.retry(ctx, func() (err error) {
		there, err = r.repo.hasBlob(ctx, d)
		return err
	})
	return there, wrapBlob(d, err)
}

// Can tells what registries can do: whether one does is found out by asking it.
func (r *Repository) Can() store.Abilities {
	can := store.Abilities{Tags: true, Attachments: true, Complete: true, Mounts: true,
		Conditions: true}
	if refused := r.repo.host.noSparse.Load(); refused != nil {
		can.NoSparse = *refused
	}
	if !r.source {
		can.TakesReferrers = r.takesReferrers
	}
	return can
}

// Commit makes sure that the changes of tags by UpdateTag last, see [Repository.Settle].
func (r *Repository) Commit(ctx context.Context) error { return r.Settle(ctx) }

// ErrNoDelete is the error of a registry that deletes no manifests, or no tags.
var ErrNoDelete = fault.Advise(errors.New("the registry does not delete manifests"),
	"allow deleting in the configuration of the registry, such as REGISTRY_STORAGE_DELETE_ENABLED=true")

// Delete deletes a manifest with all its tags. The error is [fs.ErrNotExist] if there is none, and [ErrNoDelete] if the
// registry deletes none.
func (r *Repository) Delete(ctx context.Context, d digest.Digest) error {
	if err := verify.Digest(d); err != nil {
		return err
	}
	return r.delete(ctx, d.String(), http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

// Untag deletes a tag alone ("Deleting tags" of the distribution specification). The error is [fs.ErrNotExist] if there
// is none, and [ErrNoDelete] if the registry deletes no tags.
func (r *Repository) Untag(ctx context.Context, tag string) error {
	if err := checkTag(tag); err != nil {
		return err
	}
	return r.delete(ctx, tag, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

// delete deletes what has a name. refused are the statuses with which registries say that they do not do so.
func (r *Repository) delete(ctx context.Context, name string, refused ...int) error {
	r.deleting.Do(func() {
		r.deleter = r.repo.withScopes("repository:" + r.repo.path + ":pull,push,delete")
	})
	q := request{method: http.MethodDelete, path: "/manifests/" + name, success: accepted}
	err := r.retry(ctx, func() error {
		_, err := r.deleter.try(ctx, q)
		return err
	})
	switch {
	case err == nil:
		return nil
	case hasStatus(err, refused...), hasCode(err, "UNSUPPORTED"):
		return remoteError(fmt.Errorf("%w: %w", ErrNoDelete, err))
	}
	return notFoundError(fmt.Errorf("deleting %s: %w", name, err))
}
