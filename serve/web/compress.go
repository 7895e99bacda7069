package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"
)

// maxZips is how many answers of any length are compressed at once, besides all lines, which are compressed once ([kept]).
// Each takes 1.3 MB for as long as its client reads, which may be slow.
const maxZips = 8

// compressors are the gzip writers of a site, which are used again. They are safe for concurrent use.
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

// try returns a writer that is to be given back by done, or nil where too many are at work.
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

// all compresses what is in memory. The caller sees to it that few do so at once.
func (c *compressors) all(b []byte) []byte {
	z := c.pool.Get().(*gzip.Writer)
	defer c.pool.Put(z)
	var out bytes.Buffer
	z.Reset(&out)
	// A buffer takes everything.
	_, _ = z.Write(b)
	_ = z.Close()
	z.Reset(nil)
	return out.Bytes()
}
