package change

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/sqlite"
)

// databaseReader reads the catalog of a database, which was opened with KeepGoing.
type databaseReader struct{ db *sqlite.DB }

func (databaseReader) kind() Kind { return Database }

func (r databaseReader) load(ctx context.Context, w wants) (*declcfg.Catalog, error) {
	c, err := r.db.Reduced(ctx)
	if err != nil || w.nothing() {
		return c, err
	}
	return c, w.fill(c, r.db.BlobsOf(ctx, w.any))
}

func (r databaseReader) blobs(ctx context.Context, wanted func(string) bool) iter.Seq2[declcfg.Blob, error] {
	return r.db.BlobsOf(ctx, wanted)
}

func (r databaseReader) extras(ctx context.Context) (*extras, error) {
	columns, err := r.db.Origins(ctx)
	if err != nil {
		return nil, err
	}
	c, err := r.db.Skeleton(ctx)
	if err != nil {
		return nil, err
	}
	b := &extras{origins: edit.Origins{}, findings: r.db.Findings()}
	for i := range c.Bundles {
		if o, ok := columns[c.Bundles[i].Name]; ok {
			b.origins[edit.Name{Package: c.Bundles[i].Package, Bundle: c.Bundles[i].Name}] = o
		}
	}
	for _, f := range b.findings {
		if f.Kind == sqlite.Quarantined {
			b.broken = append(b.broken, broken{f.Package, f.Reason})
		}
	}
	b.stranded, err = r.db.Stranded(ctx)
	return b, err
}

func (o Options) readDatabase(reuse, stored bool) sqlite.Options {
	return sqlite.Options{KeepGoing: true, AnyImages: o.AnyImages, Reuse: reuse, Stored: stored, Jobs: o.Jobs}
}

// database edits a database in place.
func database(ctx context.Context, path string, e Edit, o Options) (*Result, error) {
	if !o.DryRun {
		// Leftovers of a killed edit are removed even if there is nothing to write. A failure is ignored: a user who
		// cannot write there cannot have left them.
		_ = atomicfs.Sweep(path)
	}
	var result *Result
	write := sqlite.WriteOptions{
		Lossy: o.Lossy, Wait: o.Wait, New: o.Create, HeadManifests: e.HeadManifests, AnyImages: o.AnyImages,
	}
	write.Origins = func(pkg, bundle string) (declcfg.Origin, bool) { return result.Origins(pkg, bundle) }
	written, err := sqlite.Replace(ctx, path, o.readDatabase(true, true), write,
		func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
			var r reader = empty{Database}
			if db != nil {
				r = databaseReader{db}
			}
			p, err := apply(ctx, r, e, o)
			if err != nil {
				return nil, err
			}
			result = p.result
			switch {
			case result.Unchanged:
				return nil, nil
			case o.DryRun:
				result.Written, err = dryRun(ctx, p, write)
				return nil, err
			}
			return p.blobs(ctx, nil), nil
		})
	if err != nil {
		return nil, err
	}
	if written != nil {
		result.Written = written
	}
	return result, nil
}

// dryRun writes a temporary database to find out whether it can be written.
func dryRun(ctx context.Context, p *plan, write sqlite.WriteOptions) (_ *sqlite.Written, err error) {
	dir, err := os.MkdirTemp("", "bindery-dry-run-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return sqlite.Create(ctx, filepath.Join(dir, "index.db"), p.blobs(ctx, nil), write)
}

// empty is the reader of an empty catalog.
type empty struct{ of Kind }

func (r empty) kind() Kind { return r.of }

func (empty) load(context.Context, wants) (*declcfg.Catalog, error) {
	return &declcfg.Catalog{}, nil
}

func (empty) blobs(context.Context, func(string) bool) iter.Seq2[declcfg.Blob, error] {
	return func(func(declcfg.Blob, error) bool) {}
}

func (empty) extras(context.Context) (*extras, error) { return &extras{}, nil }
