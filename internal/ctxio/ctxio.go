// Package ctxio makes readers and writers end with a context.
package ctxio

import (
	"context"
	"io"
)

// Reader reads from R until Ctx ends; from then on every Read fails with its cause.
type Reader struct {
	Ctx context.Context
	R   io.Reader
}

// Read implements [io.Reader].
func (r Reader) Read(p []byte) (int, error) {
	if r.Ctx.Err() != nil {
		return 0, context.Cause(r.Ctx)
	}
	return r.R.Read(p)
}

// Writer writes to W until Ctx ends; from then on every Write fails with its cause.
type Writer struct {
	Ctx context.Context
	W   io.Writer
}

// Write implements [io.Writer].
func (w Writer) Write(p []byte) (int, error) {
	if w.Ctx.Err() != nil {
		return 0, context.Cause(w.Ctx)
	}
	return w.W.Write(p)
}
