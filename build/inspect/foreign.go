package inspect

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/sqlite"
)

// examineWhole examines the merged file system of an image whose catalog is not in bindery's layers, or that is not a
// catalog.
func (c *imageCheck) examineWhole(ctx context.Context, v *view) (err error) {
	labels := c.image.Config.Config.Labels
	var wanted []string
	places := c.cachePlaces(v)
	switch c.kind {
	case Catalog:
		wanted = []string{clean(c.r.Path)}
		for _, dir := range places {
			if v.cacheFormat(dir) == NativeCache {
				wanted = append(wanted, dir)
			}
		}
	case Bundle:
		wanted = bundle.Paths(labels)
	case Database:
		return c.database(ctx, clean(c.r.Path))
	default:
		c.addNote("%s: no label identifies the content: only digests, modes and platforms were compared", c.platform)
		return nil
	}
	if slices.Contains(wanted, "") {
		c.report(aboutLabel, "", "the path %.200q of the label is invalid", c.r.Path)
		return nil
	}
	tree, err := c.image.Extract(ctx, wanted, images.ExtractOptions{Limits: c.o.Limits, Temp: c.o.Temp})
	if errors.Is(err, images.ErrInvalid) && ctx.Err() == nil {
		c.report(aboutLayer, "", "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if c.kind == Bundle {
		return c.bundle(ctx, tree)
	}
	return c.catalog(ctx, v, tree, wanted[0], places)
}

// catalog validates a catalog as a whole and has the server verify the caches next to it.
func (c *imageCheck) catalog(ctx context.Context, v *view, tree fs.FS, dir string, places []string) error {
	configs, err := fs.Sub(tree, dir)
	if err != nil {
		return err
	}
	if info, err := fs.Stat(configs, "."); err != nil || !info.IsDir() {
		c.report(aboutCatalog, dir, "the label names it, but the directory does not exist")
		return nil
	}
	all, err := declcfg.Load(ctx, configs, declcfg.LoadOptions{Skeleton: true, Jobs: c.o.Jobs})
	if err == nil {
		err = all.Validate()
	}
	var invalid *declcfg.ValidationError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &invalid):
		c.report(aboutCatalog, dir, "%v", err)
	case err != nil:
		return err
	}
	if all != nil {
		c.foreignPackages(all, v, dir)
		files, err := declcfg.Files(configs)
		if err != nil {
			return err
		}
		c.countFiles(c.image.Digest.String(), len(files))
	}
	all = nil
	for _, at := range places {
		k := Cache{Path: "/" + at, Format: v.cacheFormat(at), State: CacheUnchecked}
		switch {
		case k.Format == "":
			k.Format, k.State = UnknownFormat, CacheMissing
			c.report(aboutCache, at, "the image declares a cache in /%s, which is missing", at)
		case k.Format == JSONCache || k.Format == PogrebCache:
			if err := c.opmCache(ctx, v, at, &k); err != nil {
				return err
			}
		case k.Format == NativeCache:
			k.State = CacheValid
			cache, err := fs.Sub(tree, at)
			if err != nil {
				return err
			}
			store, err := serve.Load(ctx, serve.FileSystem("/"+dir, configs, cache),
				serve.LoadOptions{EnforceIntegrity: true})
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				k.State, k.Why = CacheInvalid, err.Error()
				c.report(aboutCache, at, "%v", err)
			default:
				if err := store.Close(); err != nil {
					return err
				}
			}
		}
		c.addCache(k)
	}
	return nil
}

// foreignPackages lists the packages of a catalog with the layers that their files come from.
func (c *imageCheck) foreignPackages(all *declcfg.Catalog, v *view, dir string) {
	in := map[string]map[int]bool{}
	for b, err := range all.Blobs() {
		if err != nil || b.BlobPackage() == "" {
			continue
		}
		pkg := b.BlobPackage()
		if in[pkg] == nil {
			in[pkg] = map[int]bool{}
		}
		if n := v.find(path.Join(dir, b.Position().File)); n != nil && n.layer >= 0 {
			in[pkg][n.layer] = true
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(in)) {
		p := Package{Name: pkg}
		for _, n := range slices.Sorted(maps.Keys(in[pkg])) {
			p.Layers = append(p.Layers, c.image.Layers[n].Digest)
		}
		if !slices.ContainsFunc(c.r.Packages, func(q Package) bool { return q.Name == pkg }) {
			c.r.Packages = append(c.r.Packages, p)
		}
	}
}

// bundle reads a bundle and compares its annotations with the image's labels.
func (c *imageCheck) bundle(ctx context.Context, tree fs.FS) error {
	labels := c.image.Config.Config.Labels
	b, err := bundle.Read(ctx, tree, bundle.ReadOptions{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, bundle.ErrInvalid):
		c.report(aboutBundle, "", "%v", err)
	case err != nil:
		return err
	}
	if b == nil || b.AnnotationsFile == "" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(b.Annotations)) {
		if got, ok := labels[key]; !ok {
			c.report(aboutLabel, "", "the label %.200s of %s is missing", key, b.AnnotationsFile)
		} else if got != b.Annotations[key] {
			c.report(aboutLabel, "", "the label %.200s is %.200q, and %s has %.200q", key, got, b.AnnotationsFile,
				b.Annotations[key])
		}
	}
	return nil
}

// database verifies the database of an image that bindery did not build.
func (c *imageCheck) database(ctx context.Context, name string) error {
	if c.image.Layers == nil || slices.ContainsFunc(c.of,
		func(f *facts) bool { return f.rebuilt && f.declared.kind == "database" }) {
		return nil // verified with its layer
	}
	packages, err := databasePackages(ctx, c.o.Temp, func(w io.Writer) error {
		_, err := c.image.CopyFile(ctx, name, w, images.ExtractOptions{Limits: c.o.Limits, Temp: c.o.Temp})
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, images.ErrInvalid), isDatabaseError(err):
		c.report(aboutDatabase, name, "%v", err)
		return nil
	}
	for _, pkg := range packages {
		c.r.Packages = append(c.r.Packages, Package{Name: pkg})
	}
	return err
}

// database verifies the database in a layer that bindery built.
func (l *layerCheck) database(ctx context.Context) error {
	for _, x := range l.c.entries {
		if x.name != "database/index.db" || x.kind != '0' {
			continue
		}
		packages, err := databasePackages(ctx, l.o.Temp, func(w io.Writer) error {
			r, err := l.c.open(x)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, r)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isDatabaseError(err):
			l.report(aboutDatabase, "", x.name, "%v", err)
			return nil
		case err != nil:
			return err
		}
		l.f.packages = packages
		if names := slices.Sorted(slices.Values(l.f.declared.packages)); l.f.declared.annotated && !slices.Equal(names,
			packages) {
			l.report(aboutAnnotation, "", "", "the image declares the packages %.500q, but contains %.500q", names,
				packages)
		}
		return nil
	}
	l.report(aboutDatabase, "", "database/index.db", "the layer has no database")
	return nil
}

// databasePackages loads a database, which validates it, and returns the sorted names of its packages.
func databasePackages(ctx context.Context, temp string, write func(io.Writer) error) (_ []string, err error) {
	work, err := images.NewWorkspace(ctx, temp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	name := filepath.Join(work.Dir(), "index.db")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, name, sqlite.Options{TempDir: work.Dir()})
	if err != nil {
		return nil, withoutPath(err, name)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Skeleton(ctx)
	if err != nil {
		return nil, withoutPath(err, name)
	}
	packages := []string{}
	for i := range c.Packages {
		packages = append(packages, c.Packages[i].Name)
	}
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// withoutPath replaces the path of the temporary file in an error by the name in the image: the path differs from run
// to run.
func withoutPath(err error, name string) error {
	if text := strings.ReplaceAll(err.Error(), name, "index.db"); isDatabaseError(err) {
		return &databaseError{text, err}
	}
	return err
}

// databaseError is an error about a database, with the database's name in the image.
type databaseError struct {
	text string
	err  error
}

func (e *databaseError) Error() string { return e.text }
func (e *databaseError) Unwrap() error { return e.err }

// isDatabaseError reports whether the database itself is invalid; other errors mean that reading it failed.
func isDatabaseError(err error) bool {
	return slices.ContainsFunc([]error{sqlite.ErrNotDatabase, sqlite.ErrDamaged, sqlite.ErrUnsupported,
		sqlite.ErrInvalid}, func(class error) bool {
		return errors.Is(err, class)
	})
}
