package build

import (
	"context"
	"io"
	"io/fs"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// blobSpool stores the files of streamed catalogs: a layer needs the length of a file before its first byte.
type blobSpool struct {
	*spool.Spool
	texts declcfg.Texts
	text  []byte // scratch
}

func newSpool(dir string) *blobSpool { return &blobSpool{Spool: spool.New(dir, 0)} }

// add appends a blob, joining it to the spans of its catalog.
func (s *blobSpool) add(spans []spool.Span, b declcfg.Blob, f declcfg.Format) (_ []spool.Span, err error) {
	if s.text, err = s.texts.Append(s.text[:0], b, f); err != nil {
		return nil, err
	}
	at, err := s.Append(s.text)
	if err != nil {
		return nil, err
	}
	if last := len(spans) - 1; last >= 0 && spans[last].At+spans[last].Len == at.At {
		spans[last].Len += at.Len
		return spans, nil
	}
	return append(spans, at), nil
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
	at, err := cataloglayer.SpoolContent(ctx, s.Spool, e)
	if err != nil {
		return e, err
	}
	copied := s.entry(e.Name, []spool.Span{at})
	copied.Mode = e.Mode
	return copied, nil
}
