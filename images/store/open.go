package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Bytes is the content of a blob that is in memory.
func Bytes(content []byte) Content {
	return Content{Open: func(_ context.Context, from int64) (io.ReadCloser, error) {
		if from < 0 || from > int64(len(content)) {
			return nil, fmt.Errorf("%w: offset %d of %d bytes", fault.ErrInvalid, from, len(content))
		}
		return io.NopCloser(bytes.NewReader(content[from:])), nil
	}}
}

// ContentOf is the content of a blob at a place.
func ContentOf(r Reader, d v1.Descriptor) Content {
	can := r.Can()
	c := Content{Open: func(ctx context.Context, from int64) (io.ReadCloser, error) { return r.Blob(ctx, d, from) }}
	if can.Repositories != nil {
		c.Repositories = can.Repositories(d.Digest)
	}
	if can.File != nil {
		c.File = func(ctx context.Context, make bool) (string, bool) { return can.File(ctx, d.Digest, make) }
	}
	return c
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
