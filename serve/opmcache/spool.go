package opmcache

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// spool is a temporary file that texts are appended to and read from again in another order: a digest takes all of a
// catalog in the order of names, and memory is not the place for it. It is not safe for concurrent use.
type spool struct {
	f    *os.File
	w    *bufio.Writer
	size int64
}

// span is a piece of a spool.
type span struct{ at, n int64 }

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "opm-cache-")
	if err != nil {
		return nil, err
	}
	return &spool{f: f, w: bufio.NewWriterSize(f, 128<<10)}, nil
}

// add appends a text.
func (s *spool) add(p []byte) (span, error) {
	at := span{s.size, int64(len(p))}
	n, err := s.w.Write(p)
	s.size += int64(n)
	return at, err
}

// copy writes a piece of what was added before the last flush.
func (s *spool) copy(ctx context.Context, w io.Writer, p span) error {
	_, err := io.Copy(w, ctxio.Reader{Ctx: ctx, R: s.open(p)})
	return err
}

func (s *spool) open(p span) io.Reader { return io.NewSectionReader(s.f, p.at, p.n) }

func (s *spool) flush() error { return s.w.Flush() }

// remove deletes the file.
func (s *spool) remove() error { return errors.Join(s.f.Close(), os.Remove(s.f.Name())) }
