package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"strconv"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Name returns HOST/PATH.
func (r *Repository) Name() string { return r.repo.name.Name() }

// checkTag returns an error for what is no tag. Not every registry refuses a digest of something else as a tag.
func checkTag(tag string) error {
	if !anchoredTag.MatchString(tag) {
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
	case hasCode(err, "NAME_INVALID"): // which an answer to HEAD does not tell
		err = remoteError(r.repo.refused("", 0, err))
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}, err
}

// Head returns the descriptor of an image that is read: in the first mirror that has it, or in the registry. The error is
// that of [Repository.Head].
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
	can := store.Abilities{Ranges: true, Tags: true, Attachments: true, Complete: true, Mounts: true,
		Conditions: true}
	if refused := r.repo.host.noSparse.Load(); refused != nil {
		can.NoSparse = *refused
	}
	return can
}

// Commit makes sure that the changes of tags by UpdateTag last, see [Repository.Settle].
func (r *Repository) Commit(ctx context.Context) error { return r.Settle(ctx) }

// ErrNoDelete is the error of a registry that deletes no manifests.
var ErrNoDelete = errors.New("the registry does not delete manifests")

// Delete deletes a manifest with all its tags. The error is [fs.ErrNotExist] if there is none, and [ErrNoDelete] if the
// registry deletes none.
func (r *Repository) Delete(ctx context.Context, d digest.Digest) error {
	if err := verify.Digest(d); err != nil {
		return err
	}
	r.deleting.Do(func() {
		r.deleter = r.repo.withScopes("repository:" + r.repo.path + ":pull,push,delete")
	})
	q := request{method: http.MethodDelete, path: "/manifests/" + d.String(), success: accepted}
	err := r.retry(ctx, func() error {
		_, err := r.deleter.try(ctx, q)
		return err
	})
	switch {
	case err == nil:
		return nil
	case hasStatus(err, http.StatusMethodNotAllowed, http.StatusNotImplemented), hasCode(err, "UNSUPPORTED"):
		return remoteError(fmt.Errorf("%w: %w", ErrNoDelete, err))
	}
	return failure(fmt.Errorf("deleting %s: %w", d, err))
}
