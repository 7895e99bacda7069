package ctxio

import (
	"io"
	"sync"
)

// copySize is the length of the buffers of [Copy] in bytes.
const copySize = 128 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// Copy works like [io.Copy] and reuses its buffers: copying a hundred thousand small files would otherwise allocate one
// for each. It is safe for concurrent use.
func Copy(w io.Writer, r io.Reader) (int64, error) {
	b := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, b[:])
}
