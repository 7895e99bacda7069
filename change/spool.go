package change

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// spool holds the blobs of a file-based catalog in a temporary file, so that they can be had again in writing order, whatever
// file and place they came from. In memory there is only the skeleton.
type spool struct {
	file    *atomicfs.Scratch
	size    int64
	entries []spooled // in writing order
	catalog *declcfg.Catalog
}

// spooled is where a blob is.
type spooled struct {
	schema, pkg, name string
	kind              int
	pos               declcfg.Position
	off, len          int64
}

// newSpool reads a catalog. Its error is a *declcfg.ValidationError with every blob that cannot be read, unless reading
// itself fails.
func newSpool(ctx context.Context, fsys fs.FS, o Options) (_ *spool, err error) {
	f, err := atomicfs.NewScratch(o.TempDir, "bindery-change-*")
	if err != nil {
		return nil, fmt.Errorf("hold back the catalog: %w", err)
	}
	s := &spool{file: f, catalog: &declcfg.Catalog{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var invalid declcfg.ValidationError
	err = declcfg.Walk(ctx, fsys, declcfg.LoadOptions{Jobs: o.Jobs, Limits: o.Limits, Warn: o.Warn}, func(m *declcfg.Meta) error {
		b, err := declcfg.Parse(m)
		if err != nil {
			invalid.Problems = append(invalid.Problems, declcfg.Problem{Position: m.Pos, Package: m.Package, Rule: declcfg.RuleSyntax, Message: err.Error()})
			return nil
		}
		if _, err := s.file.WriteAt(m.Blob, s.size); err != nil {
			return fmt.Errorf("hold back the catalog: %w", err)
		}
		s.entries = append(s.entries, spooled{b.BlobSchema(), b.BlobPackage(), b.BlobName(), rank(b), b.Position(), s.size, int64(len(m.Blob))})
		s.size += int64(len(m.Blob))
		if bundle, ok := b.(*declcfg.Bundle); ok {
			bundle.HasObjects = slices.ContainsFunc(bundle.Properties, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyBundleObject })
			bundle.Reduce()
			b = ownMemory(bundle)
		}
		s.catalog.Add(b)
		return nil
	})
	if err == nil && len(invalid.Problems) > 0 {
		err = &invalid
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.entries, before)
	return s, nil
}

// ownMemory lets go of the document that a reduced bundle came from.
func ownMemory(b *declcfg.Bundle) *declcfg.Bundle {
	for i := range b.Properties {
		b.Properties[i].Value = slices.Clone(b.Properties[i].Value)
	}
	return b
}

// rank is the place of a kind of blob in its package.
func rank(b declcfg.Blob) int {
	switch b.(type) {
	case *declcfg.Package:
		return 0
	case *declcfg.Channel:
		return 1
	case *declcfg.Bundle:
		return 2
	case *declcfg.Deprecations:
		return 4
	}
	return 3
}

// before orders blobs as they are written: see [declcfg.Catalog.Blobs].
func before(x, y spooled) int {
	if (x.pkg == "") != (y.pkg == "") {
		if x.pkg == "" {
			return 1
		}
		return -1
	}
	c := cmp.Or(cmp.Compare(x.pkg, y.pkg), cmp.Compare(x.kind, y.kind))
	switch {
	case c != 0:
		return c
	case x.kind == 1 || x.kind == 2:
		return cmp.Compare(x.name, y.name)
	case x.kind == 3 && x.pkg != "":
		return cmp.Compare(x.schema, y.schema)
	}
	return 0
}

func (*spool) kind() Kind { return Directory }

func (s *spool) load(ctx context.Context, w wants) (*declcfg.Catalog, error) {
	c := *s.catalog
	c.Packages, c.Bundles = slices.Clone(c.Packages), slices.Clone(c.Bundles)
	if w.nothing() {
		return &c, nil
	}
	return &c, w.fill(&c, s.blobs(ctx, w.any))
}

func (*spool) beyond(context.Context) (*beyond, error) { return &beyond{}, nil }

func (s *spool) blobs(ctx context.Context, wanted func(string) bool) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for _, e := range s.entries {
			if wanted != nil && !wanted(e.pkg) || e.pkg == "" && e.kind != 3 {
				continue
			}
			b, err := s.read(ctx, e)
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func (s *spool) read(ctx context.Context, e spooled) (declcfg.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	text := make([]byte, e.len)
	if _, err := s.file.ReadAt(text, e.off); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read what was held back: %w", err)
	}
	b, err := declcfg.Parse(&declcfg.Meta{Schema: e.schema, Package: e.pkg, Name: e.name, Blob: json.RawMessage(text), Pos: e.pos})
	if err != nil {
		return nil, err
	}
	if bundle, ok := b.(*declcfg.Bundle); ok {
		bundle.HasObjects = slices.ContainsFunc(bundle.Properties, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyBundleObject })
	}
	return b, nil
}

func (s *spool) Close() error { return s.file.Close() }
