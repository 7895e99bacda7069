package change

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

// directoryReader reads a catalog directory. It loads only the manifests that an edit needs.
type directoryReader struct{ dir *catalogdir.Dir }

func (directoryReader) kind() Kind { return Directory }

func (r directoryReader) load(ctx context.Context, w wants) (*declcfg.Catalog, error) {
	switch {
	case w.all:
		return r.dir.Load(ctx, nil)
	case w.nothing() && w.scope != nil:
		return r.dir.LoadStubs(ctx, func(pkg string) bool { return w.scope[pkg] })
	}
	c, err := r.dir.Load(ctx, w.any)
	if err != nil {
		return nil, err
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		w.look(b)
		if w.any(b.Package) && !w.whole[b.Package] {
			b.Reduce()
		}
	}
	return c, nil
}

func (directoryReader) extras(context.Context) (*extras, error) { return &extras{}, nil }

// blobs is never called: unchanged packages stay in their files.
func (directoryReader) blobs(context.Context, func(string) bool) iter.Seq2[declcfg.Blob, error] {
	return failing(errors.New("a directory is not rewritten"))
}

func failing(err error) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) { yield(nil, err) }
}

// directory edits a catalog directory in place.
func directory(ctx context.Context, path string, e Edit, o Options) (_ *Result, err error) {
	dir, made, err := openDirectory(ctx, path, o)
	if err != nil {
		return nil, err
	}
	var r reader = empty{Directory}
	if dir != nil {
		r = directoryReader{dir}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	if made {
		// No other process uses the directory while the lock is held. Remove fails if it is not empty.
		defer func() { _ = os.Remove(path) }()
	}
	p, err := apply(ctx, r, e, o)
	if err != nil || p.result.Unchanged {
		return resultOf(p, err)
	}
	now := &declcfg.Catalog{}
	for name := range p.changed {
		if c := p.after[name]; c != nil {
			now.Append(c)
		}
	}
	packages := slices.Sorted(maps.Keys(p.changed))
	var files catalogdir.Result
	switch {
	case dir == nil: // a dry run of what makes a directory
	case o.DryRun:
		files, err = dir.Plan(ctx, packages, now)
	default:
		files, err = dir.Replace(ctx, packages, now)
	}
	p.result.Files, p.result.Removed = files.Files(), files.Removed
	return resultOf(p, err)
}

func resultOf(p *plan, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	return p.result, nil
}

// openDirectory opens the directory for an edit. If it does not exist and [Options.Create] is set, it creates the
// directory and returns made == true: the caller removes it if it stays empty. A dry run creates none and returns a nil
// Dir.
func openDirectory(ctx context.Context, path string, o Options) (_ *catalogdir.Dir, made bool, err error) {
	for {
		dir, err := catalogdir.Open(ctx, path, catalogdir.Options{
			Wait: o.Wait, Jobs: o.Jobs, Format: o.Format, ReadOnly: o.DryRun, Warn: o.Warn,
		})
		if !errors.Is(err, fs.ErrNotExist) || !o.Create {
			return dir, made, err
		}
		if o.DryRun {
			return nil, false, nil
		}
		// Another edit that created it may remove it before it is opened here.
		if err := os.Mkdir(path, 0o777); err == nil {
			made = true
		} else if !errors.Is(err, os.ErrExist) {
			return nil, false, err
		}
		if err := ctx.Err(); err != nil {
			return nil, made, context.Cause(ctx)
		}
	}
}
