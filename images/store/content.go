package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Content is where the content of a blob is.
type Content struct {
	// Open opens it at an offset in bytes. It is called once for each attempt, with the offset from which that goes on,
	// and not at all if the place has the blob or takes it from elsewhere.
	Open func(ctx context.Context, from int64) (io.ReadCloser, error)
	// Repositories are those of registries that have it, as HOST/PATH, the likeliest first. A registry is asked to
	// mount it from there (distribution specification, "Mounting a blob from another repository").
	Repositories []string
	// Ask has the place asked for it whatever its size: a small one may be sent with less than a question takes.
	Ask bool
	// File, unless nil, returns a complete file of it that does not change, or false if there is none: with make also
	// one that is made for it, where that is less work than reading and writing it. A layout in the same file system
	// takes it by a hard link.
	File func(ctx context.Context, make bool) (path string, ok bool)
}

// WriteBytes writes a blob that is in memory.
func WriteBytes(ctx context.Context, w Writer, d v1.Descriptor, content []byte) error {
	_, err := w.WriteBlob(ctx, d, Bytes(content))
	return err
}

// Bytes is the content of a blob that is in memory.
func Bytes(content []byte) Content {
	return Content{Open: func(_ context.Context, from int64) (io.ReadCloser, error) {
		if from < 0 || from > int64(len(content)) {
			return nil, fmt.Errorf("%w: offset %d of %d bytes", fault.ErrInvalid, from, len(content))
		}
		return io.NopCloser(bytes.NewReader(content[from:])), nil
	}}
}

// ContentOf is the content of a blob at a place that is copied from: errors of reading it are a [*SourceError].
func ContentOf(r Reader, d v1.Descriptor) Content {
	can := r.Can()
	c := Content{Open: func(ctx context.Context, from int64) (io.ReadCloser, error) {
		body, err := r.Blob(ctx, d, from)
		if err != nil {
			return nil, &SourceError{Err: err}
		}
		return sourceBody{body}, nil
	}}
	if can.Repositories != nil {
		c.Repositories = can.Repositories(d.Digest)
	}
	if can.File != nil {
		c.File = func(ctx context.Context, make bool) (string, bool) { return can.File(ctx, d.Digest, make) }
	}
	return c
}

// SourceError is an error of the source, and not of the destination: of reading it or, if Opening is set, of opening it,
// which the error itself says.
type SourceError struct {
	Err     error
	Opening bool
}

func (e *SourceError) Error() string {
	if e.Opening {
		return e.Err.Error()
	}
	return "source: " + e.Err.Error()
}

func (e *SourceError) Unwrap() error { return e.Err }

// sourceBody is the content of a blob at a source.
type sourceBody struct{ io.ReadCloser }

func (b sourceBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = &SourceError{Err: err}
	}
	return n, err
}

// Verifies tells whether the body compares itself with its digest, so that the destination need not.
func (b sourceBody) Verifies(d digest.Digest, size int64) bool {
	return verify.Verifies(b.ReadCloser, d, size)
}

// ReadAt is for places whose blobs are files, of a known size: it opens a blob at an offset. From the start, the reader
// fails at its end if the digest or the size differs from the descriptor. After an error the file is closed.
func ReadAt(ctx context.Context, d v1.Descriptor, f io.ReadSeekCloser, size, from int64) (_ io.ReadCloser, err error) {
	err = verify.Size(d, size)
	switch {
	case err != nil:
	case from < 0 || from > size:
		err = fmt.Errorf("%s: %w: offset %d of %d bytes", d.Digest, fault.ErrInvalid, from, size)
	case from == 0:
		return verify.Body(ctx, f, d.Digest, d.Size), nil
	default:
		_, err = f.Seek(from, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		ctxio.Reader
		io.Closer
	}{ctxio.Reader{Ctx: ctx, R: f}, f}, nil
}

// Skip is for places that open a blob only at its start: it opens it and drops what is before an offset.
func Skip(open func() (io.ReadCloser, error), from int64) (io.ReadCloser, error) {
	if from < 0 {
		return nil, fmt.Errorf("%w: offset %d", fault.ErrInvalid, from)
	}
	body, err := open()
	if err != nil || from == 0 {
		return body, err
	}
	if _, err := io.CopyN(io.Discard, body, from); err != nil {
		return nil, errors.Join(verify.ShortRead(err), body.Close())
	}
	return body, nil
}
