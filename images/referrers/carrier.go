package referrers

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/verify"
)

// The interfaces in this file are what a [Reader] or a [Writer] may have beside its methods. [CopyImage] uses what is
// there, since it saves requests and bytes; a place without them is copied from and to anyway.

// Ranger is a [Reader] that opens a blob at an offset. Read from the start, the blob is compared with its digest and
// size as by Blob; from another offset only its size is.
type Ranger interface {
	BlobFrom(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error)
}

// OpenAt opens the blob of a call of [Carrier] at an offset.
type OpenAt = func(ctx context.Context, from int64) (io.ReadCloser, error)

// Carrier is a [Writer] that takes the rest of a blob after an interruption, and that may take a blob from another
// place than the source.
type Carrier interface {
	// CarryBlob writes a blob unless it is there. open is called once for each attempt, and not at all if the blob is
	// there or if the place has it elsewhere: then from is where, and empty otherwise.
	CarryBlob(ctx context.Context, d v1.Descriptor, open OpenAt) (from string, err error)
}

// Header is a [Reader] that tells what a manifest is without reading it.
type Header interface {
	// Head returns the digest, media type and size in bytes of the manifest with a digest or a tag. The error is
	// [fs.ErrNotExist] if there is none.
	Head(ctx context.Context, name string) (v1.Descriptor, error)
}

// TagLister is a [Reader] that lists its tags, and takes advantage of it when it lists referrers.
type TagLister interface {
	// TagsUpTo returns the tags of at most so many pages of a list; all tells whether these are all tags.
	TagsUpTo(ctx context.Context, pages int) (tags []string, all bool, err error)
	// ReferrersAmong is Referrers of a reader of which is known what tags it has.
	ReferrersAmong(ctx context.Context, subject digest.Digest, has func(tag string) bool) ([]v1.Descriptor, error)
}

// TagWriter is a [Writer] that writes a tag whatever it stood for, by one request.
type TagWriter interface {
	WriteTag(ctx context.Context, tag, mediaType string, text []byte) error
}

// SparseWriter is a [Writer] that may refuse a manifest which refers to something that is not there.
type SparseWriter interface {
	// WriteSparse writes an index whose manifests are not all there, under a tag or under its digest. refused tells
	// that the place takes no such index; err is its answer.
	WriteSparse(ctx context.Context, name, mediaType string, text []byte) (refused bool, err error)
	// RefusesSparse returns an earlier answer by which the place has refused such an index; nil if there is none. Then
	// nothing is copied for another one.
	RefusesSparse() error
	// IsIncomplete tells whether an error of WriteManifest or WriteTag says that something is missing to which the
	// manifest refers.
	IsIncomplete(err error) bool
}

// Settler is a [Writer] whose changes of tags other clients may undo; Settle makes sure of them.
type Settler interface {
	Settle(ctx context.Context) error
}

// Named is a place with a name that people know it by, such as HOST/REPOSITORY.
type Named interface {
	Name() string
}

// nameOf returns the name of a place; empty if it has none.
func nameOf(place any) string {
	if n, ok := place.(Named); ok {
		return n.Name()
	}
	return ""
}

// WriteTag makes a tag stand for a manifest, whatever it stood for. What the manifest refers to is there.
func WriteTag(ctx context.Context, w Writer, tag, mediaType string, text []byte) error {
	if direct, ok := w.(TagWriter); ok {
		return direct.WriteTag(ctx, tag, mediaType, text)
	}
	return w.UpdateTag(ctx, tag, func([]byte) ([]byte, string, error) { return text, mediaType, nil })
}

// BlobFrom opens a blob at an offset: by [Ranger] if the reader is one, else what is before it is read and dropped.
func BlobFrom(ctx context.Context, r Reader, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	if at, ok := r.(Ranger); ok && from > 0 {
		return at.BlobFrom(ctx, d, from)
	}
	body, err := r.Blob(ctx, d)
	if err != nil || from == 0 {
		return body, err
	}
	if _, err := io.CopyN(io.Discard, body, from); err != nil {
		return nil, errors.Join(verify.ShortRead(err), body.Close())
	}
	return body, nil
}

// carry writes a blob and returns where the place had it, if it is not from the source.
func carry(ctx context.Context, w Writer, d v1.Descriptor, open OpenAt) (from string, err error) {
	if c, ok := w.(Carrier); ok {
		return c.CarryBlob(ctx, d, open)
	}
	return "", w.WriteBlob(ctx, d, func(ctx context.Context) (io.ReadCloser, error) { return open(ctx, 0) })
}
