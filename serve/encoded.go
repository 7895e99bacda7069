package serve

import (
	"bytes"
	"io"
	"slices"
)

// encoded is a cache file with the findings to report about it. Manifests may still be in the spill, which must stay
// open until the file is written.
type encoded struct {
	name   string
	large  []LargeBundle
	memory []byte // the file without the spilled manifests
	cuts   []cut  // in the order of the file
	absent int64  // bytes of all cuts
}

// cut is a position in memory at which spilled manifests are inserted.
type cut struct {
	at int
	*spilled
}

func (e *encoded) size() int64 { return int64(len(e.memory)) + e.absent }

// cut appends spilled manifests to the file.
func (e *encoded) cut(m *spilled) {
	e.cuts = append(e.cuts, cut{len(e.memory), m})
	e.absent += int64(m.length)
}

// WriteTo writes the file.
func (e *encoded) WriteTo(w io.Writer) (n int64, err error) {
	write := func(b []byte) error {
		written, err := w.Write(b)
		n += int64(written)
		return err
	}
	at := 0
	var buf []byte
	for _, c := range e.cuts {
		if c.at > at {
			if err := write(e.memory[at:c.at]); err != nil {
				return n, err
			}
			at = c.at
		}
		buf = slices.Grow(buf[:0], c.length)[:c.length]
		if err := c.read(buf); err != nil {
			return n, err
		}
		if err := write(buf); err != nil {
			return n, err
		}
	}
	return n, write(e.memory[at:])
}

// bytes returns the whole file.
func (e *encoded) bytes() ([]byte, error) {
	if len(e.cuts) == 0 {
		return e.memory, nil
	}
	var b bytes.Buffer
	b.Grow(int(e.size()))
	_, err := e.WriteTo(&b)
	return b.Bytes(), err
}
