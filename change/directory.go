package change

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// directory edits a catalog directory in place.
func directory(ctx context.Context, path string, e Edit, o Options) (_ *Result, err error) {
	if _, err := os.Stat(path); isAbsent(err) && o.Create {
		return newDirectory(ctx, path, e, o)
	}
	fsys, err := declcfg.OpenDir(path)
	if err != nil {
		return nil, err
	}
	s, err := newSpool(ctx, fsys, false, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := apply(ctx, s, e, o)
	if err != nil {
		return nil, err
	}
	if p.result.Unchanged {
		return p.result, nil
	}
	return p.result, rewrite(ctx, path, fsys, s, p, o)
}

// newDirectory makes a catalog directory.
func newDirectory(ctx context.Context, path string, e Edit, o Options) (*Result, error) {
	p, err := apply(ctx, empty{Directory}, e, o)
	if err != nil {
		return nil, err
	}
	if p.result.Unchanged || o.DryRun {
		return p.result, nil
	}
	return p.result, declcfg.WriteFS(ctx, path, cmp.Or(o.Format, declcfg.FormatJSON), p.blobs(ctx, nil))
}

// rewrite writes the files of the changed packages.
func rewrite(ctx context.Context, path string, fsys fs.FS, s *spool, p *plan, o Options) error {
	files := map[string]*declcfg.Catalog{}
	home := map[string]string{}
	for _, e := range s.entries {
		if p.changed[e.pkg] && files[e.pos.File] == nil {
			f, err := fsys.Open(e.pos.File)
			if err != nil {
				return err
			}
			c, err := declcfg.Read(ctx, f, e.pos.File, declcfg.LoadOptions{Limits: o.Limits})
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			out := &declcfg.Catalog{}
			for b := range c.Blobs() {
				if !p.changed[b.BlobPackage()] {
					out.Add(b)
				}
			}
			files[e.pos.File] = out
		}
		if home[e.pkg] == "" {
			home[e.pkg] = e.pos.File
		}
	}
	for b, err := range p.blobs(ctx, func(pkg string) bool { return p.changed[pkg] }) {
		if err != nil {
			return err
		}
		name := cmp.Or(home[b.BlobPackage()], filepath.Join(b.BlobPackage(), "catalog.json"))
		if files[name] == nil {
			files[name] = &declcfg.Catalog{}
		}
		files[name].Add(b)
	}
	for name, c := range files {
		p.result.Files = append(p.result.Files, name)
		full := filepath.Join(path, name)
		if o.DryRun {
			continue
		}
		if len(c.Packages)+len(c.Channels)+len(c.Bundles)+len(c.Deprecations)+len(c.Others) == 0 {
			if err := os.Remove(full); err != nil && !isAbsent(err) {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		format := declcfg.FormatJSON
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			format = declcfg.FormatYAML
		}
		f, err := atomicfs.NewFile(full, 0o644)
		if err != nil {
			return err
		}
		if err = c.Write(f, format); err == nil {
			err = f.Commit()
		}
		if err = errors.Join(err, f.Abort()); err != nil {
			return err
		}
	}
	slices.Sort(p.result.Files)
	return nil
}
