package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"
)

// maxZips is how many answers are compressed concurrently, besides the answer with all lines, which is compressed once
// ([contentStore]). Each takes 1.3 MB until its client has read it, which may be slow.
const maxZips = 8

// compressors are the reusable gzip writers of a site. They are safe for concurrent use.
type compressors struct {
	places chan struct{}
	pool   sync.Pool
}

func newCompressors(most int) *compressors {
	return &compressors{
		places: make(chan struct{}, most),
		pool:   sync.Pool{New: func() any { return gzip.NewWriter(nil) }},
	}
}

// try returns a writer, which must be returned with done, or nil if too many are in use.
func (c *compressors) try(w io.Writer) *gzip.Writer {
	select {
	case c.places <- struct{}{}:
	default:
		return nil
	}
	z := c.pool.Get().(*gzip.Writer)
	z.Reset(w)
	return z
}

func (c *compressors) done(z *gzip.Writer) {
	z.Reset(nil)
	c.pool.Put(z)
	<-c.places
}

// compress compresses a text in memory. The caller limits the concurrency.
func (c *compressors) compress(b []byte) []byte {
	z := c.pool.Get().(*gzip.Writer)
	defer c.pool.Put(z)
	var out bytes.Buffer
	z.Reset(&out)
	// Writing to a buffer cannot fail.
	_, _ = z.Write(b)
	_ = z.Close()
	z.Reset(nil)
	return out.Bytes()
}
