// Package delta reads images of which a medium carries a part, and a registry has the rest.
package delta

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// Reader reads a repository of a medium. What the medium leaves out, since the registry has it, is read there.
type Reader struct {
	Medium store.Reader
	// Target is the repository of the registry that the images go to.
	Target store.Reader
	// Elsewhere returns other repositories of the registry that have a blob; Open opens one of them.
	Elsewhere func(digest.Digest) []string
	Open      func(name string) (store.Reader, error)
}

var _ store.Reader = (*Reader)(nil)

// Manifest returns a manifest by its digest, or by its tag on the medium.
func (r *Reader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	text, kind, err := r.Medium.Manifest(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, kind, err
	}
	if digest.Digest(name).Validate() != nil {
		// A tag of what is left out, such as the signatures of an image that an earlier archive carried.
		of, failed := r.Medium.Head(ctx, name)
		if failed != nil {
			return nil, "", err
		}
		name = of.Digest.String()
	}
	there, thereKind, failed := r.Target.Manifest(ctx, name)
	if errors.Is(failed, fs.ErrNotExist) {
		return nil, "", err // the medium's error may be ErrLeftOut: the target should have it
	}
	return there, thereKind, failed
}

// Name returns the path of the repository.
func (r *Reader) Name() string { return r.Medium.Name() }

// Can tells what the medium can do, and where else the registry has what the medium leaves out.
func (r *Reader) Can() store.Abilities {
	can := r.Medium.Can()
	can.Repositories = r.Elsewhere
	return can
}

// Head returns the descriptor of a manifest on the medium. Of what the medium leaves out and does not describe, as those
// of oc-mirror, it is that of the registry.
func (r *Reader) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	d, err := r.Medium.Head(ctx, name)
	if err != nil || d.Size > 0 {
		return d, err
	}
	there, err := r.Target.Head(ctx, d.Digest.String())
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil // what reads it says what is missing
	}
	return there, err
}

// HasBlob tells whether the medium or the registry has a blob.
func (r *Reader) HasBlob(ctx context.Context, want v1.Descriptor) (bool, error) {
	if there, err := r.Medium.HasBlob(ctx, want); there || err != nil {
		return there, err
	}
	return r.Target.HasBlob(ctx, want)
}

// Tags returns the tags on the medium.
func (r *Reader) Tags(ctx context.Context, pages int) (tags []string, all bool, err error) {
	return r.Medium.Tags(ctx, pages)
}

// Blob opens a blob on the medium, in the repository of the registry, or in another one that has it.
func (r *Reader) Blob(ctx context.Context, want v1.Descriptor, from int64) (io.ReadCloser, error) {
	blob, absent := r.Medium.Blob(ctx, want, from)
	if !errors.Is(absent, fs.ErrNotExist) {
		return blob, absent
	}
	if blob, err := r.Target.Blob(ctx, want, from); err == nil {
		return blob, nil
	}
	for _, name := range r.Elsewhere(want.Digest) {
		at, err := r.Open(name)
		if err != nil {
			continue
		}
		if blob, err := at.Blob(ctx, want, from); err == nil {
			return blob, nil
		}
	}
	return nil, absent
}

// Referrers lists what refers to a manifest on the medium.
func (r *Reader) Referrers(ctx context.Context, subject digest.Digest,
	has func(tag string) bool) ([]v1.Descriptor, error) {
	return r.Medium.Referrers(ctx, subject, has)
}
