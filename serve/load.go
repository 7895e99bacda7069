package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// LoadOptions configure [Load].
type LoadOptions struct {
	// CacheDir is a directory of cache files. Files that match the catalog are used and the rest is built: in that
	// directory if it is writable, in a temporary file otherwise. A directory with other files, such as a cache of
	// opm's, is neither read nor changed. Empty means to use the catalog's own cache, if it has one.
	CacheDir string
	// EnforceIntegrity makes it an error if the cache does not match the whole catalog.
	EnforceIntegrity bool
	// MustWrite makes it an error if CacheDir is not writable.
	MustWrite bool
	// Log receives reports about the cache and oddities of the catalog. Nil drops them.
	Log *slog.Logger
}

// Load builds a store from a source. The caller must close it.
func Load(ctx context.Context, src Source, o LoadOptions) (Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &loader{src: src.without(o.CacheDir), LoadOptions: o}
	defer debug.FreeOSMemory()
	switch {
	case src.blobs != nil && o.CacheDir == "":
		return l.fromBlobs(ctx)
	case src.blobs != nil:
		return nil, fmt.Errorf("%s is a database: only a file-based catalog has a cache directory", src.name)
	case o.CacheDir == "" && src.cache == nil && o.EnforceIntegrity:
		return nil, ErrNoCacheDir
	}
	return l.fromFiles(ctx)
}

type loader struct {
	src Source
	LoadOptions
}

// fromBlobs builds each package after its last blob.
func (l *loader) fromBlobs(ctx context.Context) (_ Store, err error) {
	b := &builder{sink: newScratch(l.Log), log: l.Log, anyImages: l.src.anyImages}
	s := &store{closers: []func() error{b.sink.close}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	spill := &spill{log: l.Log}
	defer func() { err = errors.Join(err, spill.close()) }()
	part, found, name := &declcfg.Catalog{}, manifests{}, ""
	seen := map[string]bool{}
	flush := func() error {
		if len(part.Packages)+len(part.Channels)+len(part.Bundles)+len(part.Deprecations)+len(part.Others) == 0 {
			return nil
		}
		if seen[name] {
			return fmt.Errorf("the blobs of package %q are not together", name)
		}
		seen[name] = true
		p, err := b.encode(name, part, nil, found)
		if err != nil {
			return err
		}
		s.packages = append(s.packages, p)
		return spill.close()
	}
	for blob, err := range l.src.blobs {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if blob.BlobPackage() != name {
			if err := flush(); err != nil {
				return nil, err
			}
			part, found, name = &declcfg.Catalog{}, manifests{}, blob.BlobPackage()
		}
		if yielded, ok := blob.(*declcfg.Bundle); ok {
			bundle := *yielded
			bundle.Properties = slices.Clone(yielded.Properties)
			found.add(&bundle, spill.takeManifests(&bundle))
			blob = &bundle
		}
		part.Add(blob)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return s, nil
}

// fromFiles uses the valid part of the cache and builds the rest.
func (l *loader) fromFiles(ctx context.Context) (_ Store, err error) {
	cache, err := l.openCache(ctx)
	if err != nil {
		return nil, err
	}
	s := &store{}
	defer func() {
		if err != nil {
			err = errors.Join(err, cache.close(), s.Close())
		}
	}()
	check, err := l.check(ctx, cache)
	if err != nil {
		return nil, err
	}
	if l.EnforceIntegrity && len(check.reasons) > 0 {
		return nil, fmt.Errorf("%w: cache does not match: %s", ErrIntegrity, strings.Join(check.reasons, "; "))
	}
	if len(check.build) > 0 || len(check.reasons) > 0 {
		if err := l.build(ctx, s, cache, check); err != nil {
			return nil, err
		}
	}
	built := map[string]bool{}
	for _, p := range s.packages {
		built[p.name] = true
	}
	for _, name := range sortedNames(cache.packages) {
		p := cache.packages[name]
		if check.fresh[name] == nil || built[name] {
			if err := p.Close(); err != nil {
				return nil, err
			}
			delete(cache.packages, name)
			continue
		}
		s.packages = append(s.packages, p)
		delete(cache.packages, name)
	}
	return s, nil
}

// openCache reads the cache directory, or the cache that came with the catalog. An unreadable directory does not
// prevent serving the catalog.
func (l *loader) openCache(ctx context.Context) (*cacheDir, error) {
	none := &cacheDir{packages: map[string]*Package{}}
	fsys := l.src.cache
	if l.CacheDir != "" {
		info, err := os.Stat(l.CacheDir)
		if errors.Is(err, fs.ErrNotExist) {
			return none, nil
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", l.CacheDir)
		}
		if err == nil {
			fsys, err = declcfg.OpenDir(l.CacheDir)
		}
		if err != nil {
			none.unusable = err
			return none, nil
		}
	}
	if fsys == nil {
		return none, nil
	}
	dir, err := readCacheDir(ctx, fsys)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		none.unusable = err
		return none, nil
	}
	return dir, nil
}

// build builds what the cache lacks and adds it to the store.
func (l *loader) build(ctx context.Context, s *store, cache *cacheDir, check *cacheCheck) (err error) {
	l.logReasons(cache, check)
	b := &builder{fsys: l.src.fsys, fresh: check.fresh, dirty: check.dirty, log: l.Log}
	writable := l.CacheDir != "" && cache.unwritable() == nil
	if writable {
		sink := &dirSink{dir: l.CacheDir}
		defer func() {
			if err != nil {
				sink.undo()
			}
		}()
		if !l.MustWrite {
			sink.fallback = newScratch(l.Log)
		}
		b.sink = sink
		err := sink.prepare()
		if err != nil && l.MustWrite {
			return fmt.Errorf("cache directory: %w", err)
		}
		if err != nil {
			l.Log.Warn("the cache directory cannot be written: a temporary cache is used", "cache", l.CacheDir, "error",
				err)
			writable = false
			sink.undo()
		}
	} else if l.MustWrite {
		return cache.unwritable()
	}
	if !writable {
		b.sink = newScratch(l.Log)
	}
	s.closers = append(s.closers, b.sink.close)
	packages, err := b.files(ctx, check.build)
	s.packages = packages
	if err != nil {
		return err
	}
	check.dropUnfounded(packages)
	if writable {
		return l.removeStale(cache, check, packages)
	}
	return nil
}

// logReasons logs why something has to be built.
func (l *loader) logReasons(cache *cacheDir, check *cacheCheck) {
	log := l.Log.With("configs", l.src.name)
	if l.CacheDir != "" {
		log = log.With("cache", l.CacheDir)
	}
	if cache.empty() {
		log.Info("building cache")
		return
	}
	const shown = 5
	for i, reason := range check.reasons {
		if i == shown {
			log.Warn("cache requires rebuild", "more", len(check.reasons)-shown)
			break
		}
		log.Warn("cache requires rebuild", "reason", reason)
	}
	log.Info("building cache", "files", len(check.build), "packages in cache", len(check.fresh))
}

// removeStale removes the cache files of packages that the catalog no longer has, and unusable ones.
func (l *loader) removeStale(cache *cacheDir, check *cacheCheck, built []*Package) error {
	keep := map[string]bool{}
	for name := range check.fresh {
		keep[CacheFileName(name)] = true
	}
	for _, p := range built {
		keep[CacheFileName(p.name)] = true
	}
	remove := sortedNames(cache.bad)
	for _, name := range sortedNames(cache.packages) {
		remove = append(remove, CacheFileName(name))
	}
	for _, name := range remove {
		if keep[name] {
			continue
		}
		if err := os.Remove(filepath.Join(l.CacheDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cache directory: %w", err)
		}
	}
	return nil
}

// cacheCheck is the result of comparing a cache with its catalog.
type cacheCheck struct {
	fresh   map[string]*Package
	build   []string        // the files to build from, sorted
	dirty   map[string]bool // files whose present content no cache file was made from
	reasons []string        // why the cache does not match
}

// check compares the cache with the catalog's files by digest, without parsing them.
func (l *loader) check(ctx context.Context, cache *cacheDir) (*cacheCheck, error) {
	files, err := declcfg.Files(l.src.fsys)
	if err != nil {
		return nil, err
	}
	c := &cacheCheck{fresh: map[string]*Package{}, dirty: map[string]bool{}}
	for _, err := range cache.errors() {
		c.reasons = append(c.reasons, err.Error())
	}
	there := make(map[string]bool, len(files))
	for _, f := range files {
		there[f] = true
	}
	listed := map[string]bool{}
	for _, p := range cache.packages {
		for _, s := range p.sources {
			listed[s.Name] = true
		}
	}
	now, err := digestFiles(ctx, l.src.fsys,
		slices.DeleteFunc(sortedNames(listed), func(f string) bool { return !there[f] }))
	if err != nil {
		return nil, err
	}
	// A file is known if all packages with blobs in it have it as an unchanged source.
	listings := map[string]int{}
	for _, name := range sortedNames(cache.packages) {
		p := cache.packages[name]
		reason := ""
		for _, s := range p.sources {
			digest, ok := now[s.Name]
			switch {
			case !ok:
				reason = fmt.Sprintf("%s is not there", s.Name)
			case digest.Size != s.Size || digest.Digest != s.Digest:
				reason = fmt.Sprintf("cache reports digest of %s as %q, but computed digest is %q", s.Name,
					shortDigest(s), shortDigest(digest))
			default:
				digest.Packages = s.Packages
				now[s.Name] = digest
				listings[s.Name]++
			}
		}
		if len(p.sources) == 0 {
			reason = "it does not say what it was made of"
		}
		if reason == "" {
			c.fresh[name] = p
		} else {
			c.reasons = append(c.reasons, fmt.Sprintf("package %q: %s", name, reason))
		}
	}
	build := map[string]bool{}
	for _, f := range files {
		if n := listings[f]; n == 0 || n != now[f].Packages {
			if !listed[f] && isBlank(l.src.fsys, f) {
				continue // no cache file lists it, because no package has blobs in it
			}
			c.dirty[f], build[f] = true, true
			if n > 0 || !listed[f] {
				c.reasons = append(c.reasons, fmt.Sprintf("%s is not in the cache", f))
			}
		}
	}
	for name, p := range cache.packages {
		if c.fresh[name] == nil {
			for _, s := range p.sources {
				build[s.Name] = build[s.Name] || there[s.Name]
			}
		}
	}
	for _, f := range sortedNames(build) {
		if build[f] {
			c.build = append(c.build, f)
		}
	}
	return c, nil
}

// isBlank reports whether a file is so small and empty that it certainly has no blob, such as a placeholder that keeps
// a directory in version control.
func isBlank(fsys fs.FS, name string) bool {
	const most = 4 << 10
	if info, err := fs.Stat(fsys, name); err != nil || info.Size() > most {
		return false
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return false // building from it will report the error
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" {
			return false
		}
	}
	return true
}

func shortDigest(s SourceFile) string { return fmt.Sprintf("sha256:%x…", s.Digest[:8]) }

// dropUnfounded drops cached packages that list a source in which, as it turned out, they have no blobs: no builder has
// written such a file.
func (c *cacheCheck) dropUnfounded(built []*Package) {
	for name, p := range c.fresh {
		if slices.ContainsFunc(p.sources, func(s SourceFile) bool { return c.dirty[s.Name] }) &&
			!slices.ContainsFunc(built, func(b *Package) bool { return b.name == name }) {
			delete(c.fresh, name)
		}
	}
}
