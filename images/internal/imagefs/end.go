package imagefs

import (
	"bytes"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/fault"
)

// endReader checks that an archive has a proper end and only zeros after it.
type endReader struct {
	r    io.Reader
	tail [1024]byte // the last bytes that were read
	head [8]byte    // the first bytes that were read
	n    int64
}

// archiveError is like [archive.Error], and says so if the content is no archive but another compressed stream.
func (e *endReader) archiveError(err error) error {
	if e.n <= 512 && archive.Codec(e.head[:]) != "" { // the first header was not that of a tar archive
		return fmt.Errorf("%w: compressed twice: %s inside", fault.ErrInvalid, archive.Codec(e.head[:]))
	}
	return archive.Error(err)
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.addTail(p[:n])
	return n, err
}

func (e *endReader) addTail(p []byte) {
	if e.n < int64(len(e.head)) {
		copy(e.head[e.n:], p)
	}
	e.n += int64(len(p))
	if len(p) >= len(e.tail) {
		copy(e.tail[:], p[len(p)-len(e.tail):])
		return
	}
	copy(e.tail[:], e.tail[len(p):])
	copy(e.tail[len(e.tail)-len(p):], p)
}

// finish reads to the end of the stream. The last bytes that the tar reader has read must be the two zero blocks that
// end an archive.
func (e *endReader) finish() error {
	if e.n < int64(len(e.tail)) || e.tail != [1024]byte{} {
		return fmt.Errorf("%w: missing end of archive", fault.ErrInvalid)
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := e.r.Read(buf)
		if bytes.ContainsFunc(buf[:n], func(r rune) bool { return r != 0 }) {
			return fmt.Errorf("%w: data after end of archive", fault.ErrInvalid)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
