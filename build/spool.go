package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// blobSpool stores the files of streamed catalogs: a layer needs the length of a file before its first byte.
type blobSpool struct{ *spool.Spool }

func newSpool(dir string) *blobSpool { return &blobSpool{spool.New(dir, 0)} }

// add appends a blob, joining it to the spans of its catalog.
func (s *blobSpool) add(spans []spool.Span, b declcfg.Blob, f declcfg.Format) ([]spool.Span, error) {
	at := s.Len()
	if err := declcfg.NewEncoder(s, f).Encode(b); err != nil {
		return nil, err
	}
	n := s.Len() - at
	if last := len(spans) - 1; last >= 0 && spans[last].At+spans[last].Len == at {
		spans[last].Len += n
		return spans, nil
	}
	return append(spans, spool.Span{At: at, Len: n}), nil
}

// entry returns a file of a layer with the content of the spans.
func (s *blobSpool) entry(target string, spans []spool.Span) layers.Entry {
	e := layers.Entry{Name: target, Mode: layers.Normalize(fs.FileMode(0o644))}
	for _, p := range spans {
		e.Size += p.Len
	}
	e.Open = func() (io.ReadCloser, error) {
		pieces := make([]io.Reader, len(spans))
		for i, p := range spans {
			pieces[i] = s.Open(p)
		}
		return io.NopCloser(io.MultiReader(pieces...)), nil
	}
	return e
}

// copyOf returns the same file of a layer with its content in the spool.
func (s *blobSpool) copyOf(ctx context.Context, e layers.Entry) (layers.Entry, error) {
	at, err := spoolContent(ctx, s.Spool, e)
	if err != nil {
		return e, err
	}
	copied := s.entry(e.Name, []spool.Span{at})
	copied.Mode = e.Mode
	return copied, nil
}

// spoolContent appends the content of a file.
func spoolContent(ctx context.Context, s *spool.Spool, e layers.Entry) (_ spool.Span, err error) {
	r, err := e.Open()
	if err != nil {
		return spool.Span{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	at, err := s.AppendFrom(ctx, r)
	if err == nil && at.Len != e.Size {
		err = layers.ErrChanged
	}
	return at, err
}

// entrySpool stores generated files until their layer is written: the caches of all packages of a layer can be too
// large for memory.
type entrySpool struct {
	s      *spool.Spool
	unread atomic.Int64 // number of files not read yet
}

func newEntrySpool(dir string) *entrySpool { return &entrySpool{s: spool.New(dir, 0)} }

// take moves the contents of files into the spool and returns entries that read them from there. All must have been
// moved before the first is opened, and each can be opened once.
func (a *entrySpool) take(ctx context.Context, entries []layers.Entry) ([]layers.Entry, error) {
	out := make([]layers.Entry, len(entries))
	for i, e := range entries {
		if e.Kind == layers.KindFile {
			at, err := spoolContent(ctx, a.s, e)
			if err != nil {
				return nil, err
			}
			e.Open = func() (io.ReadCloser, error) { return &entryReader{a.s.Open(at), a}, nil }
			a.unread.Add(1)
		}
		out[i] = e
	}
	return out, nil
}

// entryReader reads one of the files.
type entryReader struct {
	*io.SectionReader
	from *entrySpool
}

// Close ends reading. With the last of the files the spool is closed; if the layer fails before that, the garbage
// collector closes its temporary file.
func (r *entryReader) Close() error {
	if r.from.unread.Add(-1) > 0 {
		return nil
	}
	return r.from.s.Close()
}
