package cataloglayer

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// SpoolContent appends the content of a file to a spool.
func SpoolContent(ctx context.Context, s *spool.Spool, e layers.Entry) (_ spool.Span, err error) {
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
	unread atomic.Int64 // number of files whose content has not been read back
}

func newEntrySpool(dir string) *entrySpool { return &entrySpool{s: spool.New(dir, 0)} }

// addEntries moves the contents of files into the spool, and returns the entries that have them from there. All must
// have been moved before the first is opened, and each can be opened once.
func (a *entrySpool) addEntries(ctx context.Context, entries []layers.Entry) ([]layers.Entry, error) {
	out := make([]layers.Entry, len(entries))
	for i, e := range entries {
		if e.Kind == layers.KindFile {
			at, err := SpoolContent(ctx, a.s, e)
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
