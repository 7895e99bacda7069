// Package ctxio has readers and writers that fail after a context has ended.
package ctxio

import (
	"context"
	"io"
)

// Reader reads from R. After Ctx has ended, every Read fails with its cause.
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

// Writer writes to W. After Ctx has ended, every Write fails with its cause.
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
