package imagefs

import (
	"bytes"
	"io"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/verify"
)

// heap holds the contents of files: in memory up to a limit, the rest in a temporary file.
type heap struct {
	memory int64
	temp   string
	file   *atomicfs.Scratch
	at     int64
}

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
	if h.file == nil {
		f, err := atomicfs.NewScratch(h.temp, "bindery-files-")
		if err != nil {
			return nil, err
		}
		h.file = f
	}
	if _, err := io.CopyN(h.file, r, n); err != nil {
		return nil, verify.ShortRead(err)
	}
	at := h.at
	h.at += n
	return io.NewSectionReader(h.file, at, n), nil
}

// close removes the temporary file.
func (h *heap) close() error {
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file = nil
	return f.Close()
}
