package change

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Source is a catalog that is read and edited but written elsewhere, such as the catalog of an image. It is not safe
// for concurrent use.
type Source struct {
	reader  reader
	options Options
	close   func() error
}

// FromDatabase opens a database. Its invalid packages are listed in [Result.Findings] or are an error: see
// [Options.KeepGoing].
func FromDatabase(ctx context.Context, path string, o Options) (*Source, error) {
	db, err := sqlite.Open(ctx, path, o.readDatabase(o.Reuse, false))
	if err != nil {
		return nil, err
	}
	return &Source{databaseReader{db}, o, db.Close}, nil
}

// FromFS opens a file-based catalog. Its files must not change until the source is closed.
func FromFS(ctx context.Context, fsys fs.FS, o Options) (*Source, error) {
	f, err := newFiles(ctx, fsys, o)
	if err != nil {
		return nil, err
	}
	return &Source{f, o, func() error { return nil }}, nil
}

// Empty returns an empty catalog of a kind.
func Empty(kind Kind) *Source {
	return &Source{empty{kind}, Options{}, func() error { return nil }}
}

// Kind returns the form in which the catalog is stored.
func (s *Source) Kind() Kind { return s.reader.kind() }

// Apply applies an edit to the catalog and yields the result in writing order. Unchanged packages are read from the
// source, which must stay open meanwhile; the iteration can be repeated. The source does not change.
func (s *Source) Apply(ctx context.Context, e Edit) (blobs iter.Seq2[declcfg.Blob, error], r *Result, err error) {
	p, err := apply(ctx, s.reader, e, s.options)
	if err != nil {
		return nil, nil, err
	}
	p.result.ChangedBlobs = p.blobs(ctx, func(pkg string) bool { return p.changed[pkg] })
	return p.blobs(ctx, nil), p.result, nil
}

// Close releases the source. Delivered blobs stay valid, subject to [Options.Reuse].
func (s *Source) Close() error {
	if s.close == nil {
		return errors.New("the source is closed already")
	}
	err := s.close()
	s.close = nil
	return err
}
