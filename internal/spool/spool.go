// Package spool stores bytes that are read again later or in another order: in memory up to a limit, then in an unnamed
// temporary file. A catalog can be larger than the available memory, and no file is left however the process ends.
//
// Package serve has separate stores for this: they fall back to memory if no temporary file can be created, as in a
// container with a read-only root.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
)

// Buffer is how many bytes are written to the file at once, and the minimum size of the memory.
const Buffer = 128 << 10

// Spool is an append-only sequence of bytes. One goroutine at a time may append; any number may concurrently read what
// was appended before.
type Spool struct {
	dir    string
	memory int

	mu     sync.RWMutex
	tail   []byte // what is not in the file
	inFile int64
	file   *atomicfs.Scratch // nil until the memory is full
	closed bool
}

// Span is a range of a spool: its offset and its length in bytes.
type Span struct{ At, Len int64 }

// errClosed is returned by operations on a closed spool.
var errClosed = errors.New("the spool is closed")

// New returns an empty spool that holds up to memory bytes, at least [Buffer], in memory. The file is created in dir,
// or in the system's temporary directory if dir is empty.
func New(dir string, memory int) *Spool { return &Spool{dir: dir, memory: max(memory, Buffer)} }

// Len returns the number of bytes.
func (s *Spool) Len() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.inFile + int64(len(s.tail))
}

// OnDisk reports whether there is a temporary file.
func (s *Spool) OnDisk() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.file != nil
}

// Write appends bytes.
func (s *Spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, errClosed
	case len(s.tail)+len(p) <= s.memory:
		if s.tail == nil {
			// Allocated at once: growing would need twice the memory, and unused pages cost nothing.
			s.tail = make([]byte, 0, s.memory)
		}
		s.tail = append(s.tail, p...)
		return len(p), nil
	case s.file == nil:
		f, err := atomicfs.NewScratch(s.dir, "bindery-spool-*")
		if err != nil {
			return 0, fmt.Errorf("make a temporary file: %w", err)
		}
		s.file = f
	}
	if err := s.flush(s.tail); err != nil {
		return 0, err
	}
	// From now on memory is only the write buffer.
	if s.memory = Buffer; cap(s.tail) > Buffer {
		s.tail = nil
	}
	s.tail = s.tail[:0]
	if len(p) < s.memory {
		s.tail = append(s.tail, p...)
		return len(p), nil
	}
	if err := s.flush(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *Spool) flush(p []byte) error {
	if _, err := s.file.WriteAt(p, s.inFile); err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	s.inFile += int64(len(p))
	return nil
}

// Append appends bytes and returns their span.
func (s *Spool) Append(p []byte) (Span, error) {
	at := Span{s.Len(), int64(len(p))}
	_, err := s.Write(p)
	return at, err
}

// AppendFrom appends everything from a reader and returns its span.
func (s *Spool) AppendFrom(ctx context.Context, r io.Reader) (Span, error) {
	at := s.Len()
	n, err := ctxio.Copy(s, ctxio.Reader{Ctx: ctx, R: r})
	return Span{at, n}, err
}

// ReadAt implements [io.ReaderAt].
func (s *Spool) ReadAt(p []byte, off int64) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, errClosed
	}
	n := 0
	if off < s.inFile {
		var err error
		if n, err = s.file.ReadAt(p[:min(int64(len(p)), s.inFile-off)], off); err != nil {
			return n, err
		}
	}
	if at := off + int64(n) - s.inFile; n < len(p) && at < int64(len(s.tail)) {
		n += copy(p[n:], s.tail[at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Open returns a reader of a span.
func (s *Spool) Open(p Span) *io.SectionReader { return io.NewSectionReader(s, p.At, p.Len) }

// Copy writes a span to w.
func (s *Spool) Copy(ctx context.Context, w io.Writer, p Span) error {
	_, err := io.Copy(w, ctxio.Reader{Ctx: ctx, R: s.Open(p)})
	return err
}

// Close frees the memory and removes the file. Nothing can be read afterwards. Closing again does nothing.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.tail = true, nil
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
