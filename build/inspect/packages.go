package inspect

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// The directories in images that bindery builds.
const (
	configsDir = "configs"
	nativeDir  = "cache"
)

// packages validates the packages of a layer and rebuilds the layer from their files.
func (l *layerCheck) packages(ctx context.Context) error {
	files := map[string][]layers.Entry{}
	catalogs := map[string]*declcfg.Catalog{}
	natives := map[string]entry{}
	cached, extra, whole, read := false, false, true, 0
	l.f.filesOf = map[string][]string{}
	for _, x := range l.c.entries {
		switch top, _, _ := strings.Cut(x.name, "/"); {
		case x.kind == tar.TypeDir:
			cached, extra = cached || x.name == nativeDir, extra || x.name == opmcache.Dir
			if x.mode != 0o755 && top != "tmp" {
				l.report(aboutMode, "", x.name, "mode %04o instead of 0755", x.mode)
			}
		case x.kind != tar.TypeReg: // reported already
		case top == configsDir:
			if x.mode != 0o644 && x.mode != 0o755 {
				l.report(aboutMode, "", x.name, "mode %04o instead of 0644", x.mode)
			}
			read++
			pkg, ok, err := l.file(ctx, x, catalogs)
			if err != nil {
				return err
			}
			if whole = whole && ok; ok {
				y, err := l.c.layerEntry(x)
				if err != nil {
					return err
				}
				y.Mode = layers.Normalize(y.Mode)
				files[pkg] = append(files[pkg], y)
				l.f.filesOf[pkg] = append(l.f.filesOf[pkg], x.name)
			}
		case path.Dir(x.name) == nativeDir:
			natives[path.Base(x.name)] = x
			if x.mode != 0o644 {
				l.report(aboutMode, "", x.name, "mode %04o instead of 0644", x.mode)
			}
		case strings.HasPrefix(x.name, opmcache.Dir+"/"): // compared with the rebuilt cache of all packages
		default:
			l.report(aboutLayer, "", x.name, "it does not belong in a package layer")
		}
	}
	l.countFiles(l.want, read)
	l.valid(catalogs)
	if !whole {
		return nil // a layer with such a file is not one that bindery builds: rebuilding it shows nothing more
	}
	clear(catalogs)
	var caches cataloglayer.Caches
	if cached {
		caches.NativeID = serve.CacheID()
		caches.Native = func(p cataloglayer.Package) (cataloglayer.File, error) { return l.cache(p, natives) }
	}
	if extra {
		caches.Extra = append(caches.Extra, cataloglayer.JSON())
	}
	packages, err := cataloglayer.Sorted(files)
	if err != nil {
		l.report(aboutLayer, "", "", "it cannot be rebuilt: %v", err)
		return nil
	}
	built, _ := caches.Packages(packages, "")
	if err := l.compare(ctx, built); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(natives)) {
		l.report(aboutCache, "", path.Join(nativeDir, name), "it is not the cache of a package of the layer")
	}
	return nil
}

// file reads a file of the catalog and adds it to the catalog of its package. ok is false for a file that bindery would
// not have written there.
func (l *layerCheck) file(ctx context.Context, x entry,
	catalogs map[string]*declcfg.Catalog) (pkg string, ok bool, err error) {
	r, err := l.c.open(x)
	if err != nil {
		return "", false, err
	}
	c, err := l.catalog.Read(ctx, r, strings.TrimPrefix(x.name, configsDir+"/"))
	var invalid *declcfg.ValidationError
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case errors.As(err, &invalid):
		l.report(aboutCatalog, "", x.name, "%v", err)
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	parts := c.ByPackage()
	names := slices.Sorted(maps.Keys(parts))
	if len(names) != 1 {
		l.report(aboutCatalog, "", x.name,
			"it contains blobs of %d packages, but files of bindery images have those of one: %.200q", len(names),
			names)
		return "", false, nil
	}
	pkg = names[0]
	if pkg != "" && !strings.HasPrefix(x.name, path.Join(configsDir, pkg)+"/") {
		l.report(aboutCatalog, pkg, x.name, "it contains package %q, which belongs in /%s/%s", pkg, configsDir, pkg)
		return pkg, false, nil
	}
	if catalogs[pkg] == nil {
		catalogs[pkg] = &declcfg.Catalog{}
	}
	catalogs[pkg].Append(c)
	return pkg, true, nil
}

// valid validates the packages of the layer and compares their names with the declared ones.
func (l *layerCheck) valid(catalogs map[string]*declcfg.Catalog) {
	l.f.packages = []string{}
	for _, pkg := range slices.Sorted(maps.Keys(catalogs)) {
		if pkg != "" {
			l.f.packages = append(l.f.packages, pkg)
		}
		if err := catalogs[pkg].Validate(); err != nil {
			l.report(aboutCatalog, pkg, "", "%v", err)
		}
	}
	if !slices.Equal(l.f.declared.packages, l.f.packages) {
		l.report(aboutAnnotation, "", "", "the image declares the packages %.500q, but contains %.500q",
			l.f.declared.packages, l.f.packages)
	}
}

// cache builds the cache of a package and compares it with the one in the layer. Compared caches are removed from
// natives.
func (l *layerCheck) cache(p cataloglayer.Package, natives map[string]entry) (cataloglayer.File, error) {
	f, err := cataloglayer.Native(p)
	if err != nil {
		return f, err
	}
	name := f.Name
	x, ok := natives[name]
	delete(natives, name)
	file := path.Join(nativeDir, name)
	switch {
	case !ok:
		l.report(aboutCache, p.Name, file, "it is missing")
	case x.digest != sha256.Sum256(f.Content):
		l.report(aboutCache, p.Name, file, "%s", l.why(x, p.Sources))
	}
	return f, nil
}

// why explains how a cache file differs from the one of its catalog.
func (l *layerCheck) why(x entry, sources []serve.SourceFile) string {
	p, err := serve.OpenPackage(l.c.spool.Open(x.at), x.size)
	if err != nil {
		return err.Error()
	}
	was := slices.Clone(p.Sources())
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b serve.SourceFile) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(was, sources) {
		return "it was built from other files than those in the image"
	}
	return "it differs from the one rebuilt from the same files: other answers, or another version of the encoder"
}
