// Package spool keeps bytes that are read again later or in another order: in memory up to a limit, then in a temporary
// file without a name. A catalog can be larger than memory should be, and nothing is left behind however the process ends.
//
// Package serve has stores of its own beside this one: they fall back to memory where no temporary file can be made, as in a
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

// Buffer is how many bytes are written to the file at once, and the least that is kept in memory before there is a file.
const Buffer = 128 << 10

// Spool is a sequence of bytes that only grows. One goroutine at a time appends; any number may read what was appended
// before, also meanwhile.
type Spool struct {
	dir    string
	memory int

	mu     sync.RWMutex
	tail   []byte // what is not in the file
	inFile int64
	file   *atomicfs.Scratch // nil until the memory is full
	closed bool
}

// Span is a piece of a spool: its offset and its length in bytes.
type Span struct{ At, Len int64 }

// errClosed is the error of a closed spool.
var errClosed = errors.New("the spool is closed")

// New makes an empty spool that keeps up to memory bytes, at least [Buffer], in memory. A file is made in dir, or in the
// system's directory for temporary files if dir is empty.
func New(dir string, memory int) *Spool { return &Spool{dir: dir, memory: max(memory, Buffer)} }

// Len is the number of bytes.
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
			// All at once: growing would take twice the memory, and pages that are not used cost nothing.
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
	// From now on memory is only a buffer.
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

// Append appends bytes and returns where they are.
func (s *Spool) Append(p []byte) (Span, error) {
	at := Span{s.Len(), int64(len(p))}
	_, err := s.Write(p)
	return at, err
}

// AppendFrom appends what a reader has until its end and returns where it is.
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

// Open returns a reader of a piece.
func (s *Spool) Open(p Span) *io.SectionReader { return io.NewSectionReader(s, p.At, p.Len) }

// Copy writes a piece to w.
func (s *Spool) Copy(ctx context.Context, w io.Writer, p Span) error {
	_, err := io.Copy(w, ctxio.Reader{Ctx: ctx, R: s.Open(p)})
	return err
}

// Close gives the memory and the file back. Nothing can be read any more. Closing again does nothing.
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
