package imagefs

import (
	"bytes"
	"io"

	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/internal/verify"
)

// heap holds the contents of files: in memory up to a limit, the rest in a spool.
type heap struct {
	memory int64
	rest   *spool.Spool
}

func newHeap(memory int64, temp string) *heap { return &heap{memory, spool.New(temp, 0)} }

// believed is the size in bytes up to which memory is allocated by what a header claims.
const believed = 1 << 20

// put stores a content of exactly n bytes.
func (h *heap) put(r io.Reader, n int64) (io.ReaderAt, error) {
	if n <= h.memory {
		h.memory -= n
		if n <= believed {
			content := make([]byte, n)
			if _, err := io.ReadFull(r, content); err != nil {
				return nil, verify.ShortRead(err)
			}
			return bytes.NewReader(content), nil
		}
		// Memory grows with the content, not with what a header claims.
		var b bytes.Buffer
		if _, err := io.CopyN(&b, r, n); err != nil {
			return nil, verify.ShortRead(err)
		}
		return bytes.NewReader(b.Bytes()), nil
	}
	at := spool.Span{At: h.rest.Len(), Len: n}
	if _, err := io.CopyN(h.rest, r, n); err != nil {
		return nil, verify.ShortRead(err)
	}
	return h.rest.Open(at), nil
}

// close removes the temporary file.
func (h *heap) close() error { return h.rest.Close() }
