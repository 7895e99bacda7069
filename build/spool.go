package build

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/layers"
)

// spool holds catalogs that do not lie in files of their own, one temporary file for all of them: the length of a file
// must be known before its first byte can go into a layer, and memory is not the place for a whole catalog. One
// goroutine writes; what is written can be read by any number meanwhile.
type spool struct {
	f    *os.File
	w    *bufio.Writer
	size int64
}

// span is a piece of a spool.
type span struct{ at, n int64 }

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, err
	}
	return &spool{f: f, w: bufio.NewWriterSize(f, 128<<10)}, nil
}

// Write appends to the spool.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.size += int64(n)
	return n, err
}

// add appends a blob, joining it to the spans of its catalog.
func (s *spool) add(spans []span, b declcfg.Blob, f declcfg.Format) ([]span, error) {
	at := s.size
	if err := declcfg.NewEncoder(s, f).Encode(b); err != nil {
		return nil, err
	}
	if last := len(spans) - 1; last >= 0 && spans[last].at+spans[last].n == at {
		spans[last].n += s.size - at
		return spans, nil
	}
	return append(spans, span{at, s.size - at}), nil
}

// entry is a file of a layer with the content of the spans. [spool.flush] must be called before it is opened.
func (s *spool) entry(target string, spans []span) layers.Entry {
	e := layers.Entry{Name: target, Mode: layers.Normalize(fs.FileMode(0o644))}
	for _, p := range spans {
		e.Size += p.n
	}
	e.Open = func() (io.ReadCloser, error) {
		pieces := make([]io.Reader, len(spans))
		for i, p := range spans {
			pieces[i] = io.NewSectionReader(s.f, p.at, p.n)
		}
		return io.NopCloser(io.MultiReader(pieces...)), nil
	}
	return e
}

// copyOf is the same file of a layer with its content in the spool. [spool.flush] must be called before it is opened.
func (s *spool) copyOf(ctx context.Context, e layers.Entry) (_ layers.Entry, err error) {
	r, err := e.Open()
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	at := s.size
	if _, err := io.Copy(s, ctxio.Reader{Ctx: ctx, R: r}); err != nil {
		return e, err
	}
	if s.size-at != e.Size {
		return e, layers.ErrChanged
	}
	copied := s.entry(e.Name, []span{{at, e.Size}})
	copied.Mode = e.Mode
	return copied, nil
}

func (s *spool) flush() error { return s.w.Flush() }

// Close removes the file.
func (s *spool) Close() error { return errors.Join(s.f.Close(), os.Remove(s.f.Name())) }
