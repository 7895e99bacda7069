package change

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
)

// files reads a file-based catalog that is not edited in place. Blobs are read when they are needed.
type files struct {
	fsys    fs.FS
	options declcfg.LoadOptions
	index   *declcfg.Index // nil if the files have to be read completely
}

// newFiles indexes the blobs of a catalog.
func newFiles(ctx context.Context, fsys fs.FS, o Options) (*files, error) {
	load := declcfg.LoadOptions{Dir: o.Dir, Jobs: o.Jobs, Warn: o.Warn, Lazy: true, Images: true}
	f := &files{fsys: fsys, options: load}
	var err error
	if f.index, err = declcfg.NewIndex(ctx, fsys, f.options); errors.Is(err, declcfg.ErrIrregular) {
		return f, nil
	}
	return f, err
}

func (*files) kind() Kind { return Directory }

func (f *files) load(ctx context.Context, w wants) (*declcfg.Catalog, error) {
	if w.nothing() && w.scope != nil && f.index != nil {
		return f.index.Stubs(ctx, func(pkg string) bool { return w.scope[pkg] })
	}
	c := &declcfg.Catalog{}
	for blob, err := range f.blobs(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			w.look(b)
			if !w.all && !w.whole[b.Package] {
				b.Reduce()
			}
		}
		c.Add(blob)
	}
	return c, nil
}

func (*files) extras(context.Context) (*extras, error) { return &extras{}, nil }

func (f *files) blobs(ctx context.Context, wanted func(string) bool) iter.Seq2[declcfg.Blob, error] {
	if f.index == nil {
		return declcfg.Stream(ctx, f.fsys, f.options, wanted)
	}
	return f.index.Blobs(ctx, wanted)
}
