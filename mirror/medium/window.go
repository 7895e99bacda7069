package medium

import (
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/fault"
)

// window reads the headers of a segment: a few at once where they are close together, and nothing of what is between.
type window struct {
	f        io.ReaderAt
	size, at int64
	buffer   [8 << 10]byte
	start    int64 // of what is in the buffer
	filled   int
	// budget is how many bytes may be read until it is set again.
	budget int64
}

// headerBudget is how many bytes the header of one member may have, with its records.
const headerBudget = 4 << 20

func (w *window) Read(p []byte) (int, error) {
	if w.at >= w.size || len(p) == 0 {
		return 0, io.EOF
	}
	if w.at < w.start || w.at >= w.start+int64(w.filled) {
		n, err := w.f.ReadAt(w.buffer[:min(int64(len(w.buffer)), w.size-w.at)], w.at)
		if n == 0 {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		w.start, w.filled = w.at, n
	}
	n := copy(p, w.buffer[w.at-w.start:w.filled])
	w.at += int64(n)
	if w.budget -= int64(n); w.budget < 0 {
		return 0, fmt.Errorf("%w: a header of more than %d bytes", fault.ErrLimit, headerBudget)
	}
	return n, nil
}

func (w *window) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += w.at
	case io.SeekEnd:
		offset += w.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("%w: offset %d", fault.ErrInvalid, offset)
	}
	w.at = offset
	return offset, nil
}
