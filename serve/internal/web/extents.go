package web

import (
	"errors"
	"io"
	"slices"
)

// extents reads the lines of some blobs like a file.
type extents struct {
	c     *Content
	parts []extent
	size  int64
	at    int64
}

// extent is a part of the file with its offset in the result.
type extent struct{ offset, length, begins int64 }

// newExtents returns the lines of blobs in the given order.
func newExtents(c *Content, blobs []*blob) *extents {
	e := &extents{c: c}
	for _, b := range blobs {
		e.add(b)
	}
	return e
}

// add appends the line of a blob. Neighbours in the file are one part.
func (e *extents) add(b *blob) {
	length := b.length + 1
	if n := len(e.parts); n > 0 && e.parts[n-1].offset+e.parts[n-1].length == b.offset {
		e.parts[n-1].length += length
	} else {
		e.parts = append(e.parts, extent{b.offset, length, e.size})
	}
	e.size += length
}

func (e *extents) Read(b []byte) (int, error) {
	if e.at >= e.size {
		return 0, io.EOF
	}
	i, ok := slices.BinarySearchFunc(e.parts, e.at,
		func(x extent, at int64) int { return int(min(max(x.begins-at, -1), 1)) })
	if !ok {
		i--
	}
	p := e.parts[i]
	skip := e.at - p.begins
	b = b[:min(int64(len(b)), p.length-skip)]
	n, err := e.c.file.ReadAt(b, p.offset+skip)
	e.at += int64(n)
	if n == len(b) {
		err = nil
	}
	return n, err
}

func (e *extents) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += e.at
	case io.SeekEnd:
		offset += e.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	e.at = offset
	return offset, nil
}
