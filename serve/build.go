package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/problem"
)

// builder builds cache files from a catalog's blobs. A few packages are loaded concurrently, one per processor, so that
// memory holds these packages without manifests, and not the catalog.
type builder struct {
	fsys fs.FS
	sink sink
	log  *slog.Logger
	// fresh are packages with valid cache files: their blobs are used only from dirty files.
	fresh map[string]*Package
	dirty map[string]bool
	// anyImages accepts images that are not pull specs.
	anyImages bool

	readers sync.Pool // of *declcfg.Reader
	buffers sync.Pool // of *[]byte: buffers of written cache files
}

// part is what was found of a package.
type part struct {
	sources []SourceFile
	dirty   bool     // some source is
	pkg     *Package // set after encoding
	err     error    // of encoding
}

// encode validates and encodes a package and reports answers that are too large for clients.
func (b *builder) encode(name string, c *declcfg.Catalog, sources []SourceFile, m manifests) (*Package, error) {
	valid := c.ValidGraph
	if b.anyImages {
		valid = c.ValidGraphAnyImages
	}
	graph, err := valid()
	if err != nil {
		return nil, fmt.Errorf("process package %q: %w", name, err)
	}
	buf, _ := b.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	e, err := encodePackage((*buf)[:0], c, graph, sources, m)
	if err != nil {
		return nil, fmt.Errorf("process package %q: %w", name, err)
	}
	for _, l := range e.large {
		b.log.Warn("an answer is larger than clients receive by default", "package", l.Package, "channel", l.Channel,
			"bundle", l.Bundle, "size", l.Size, "limit", ClientMessageLimit)
	}
	p, err := b.sink.put(e)
	*buf = e.memory
	b.buffers.Put(buf)
	if err != nil {
		return nil, fmt.Errorf("write cache of package %q: %w", name, err)
	}
	return p, nil
}

// files builds the packages of some files of the catalog.
func (b *builder) files(ctx context.Context, files []string) (_ []*Package, err error) {
	var (
		mu    sync.Mutex
		found = map[string][]*part{}
		errs  []error
	)
	defer func() {
		if err != nil {
			for _, parts := range found {
				closeParts(parts)
			}
		}
	}()
	err = guard.Each(ctx, runtime.GOMAXPROCS(0), groupFiles(files), func(ctx context.Context, _ int, group []string) error {
		parts, err := b.group(ctx, group)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		for name, p := range parts {
			found[name] = append(found[name], p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		sort.Slice(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
		return nil, problem.Of(errs...)
	}
	var packages []*Package
	for _, name := range sortedNames(found) {
		p, err := b.finishPackage(ctx, name, found[name])
		if err != nil {
			errs = append(errs, err)
		} else if p != nil {
			packages = append(packages, p)
		}
	}
	if len(errs) > 0 {
		return nil, problem.Of(errs...)
	}
	return packages, nil
}

func closeParts(parts []*part) {
	for _, p := range parts {
		if p.pkg != nil {
			p.pkg.Close()
		}
	}
}

// finishPackage returns a package that was found in one or more groups; nil if its cache file is valid.
func (b *builder) finishPackage(ctx context.Context, name string, parts []*part) (*Package, error) {
	cached, fresh := b.fresh[name]
	if fresh && !slices.ContainsFunc(parts, func(p *part) bool { return p.dirty }) {
		return nil, nil
	}
	if len(parts) == 1 && !fresh {
		return parts[0].pkg, parts[0].err
	}
	// The package is in several groups, or in files that were not read: all of its files are known now, and it is
	// loaded again completely.
	names := map[string]bool{}
	for _, p := range parts {
		for _, s := range p.sources {
			names[s.Name] = true
		}
	}
	if fresh {
		for _, s := range cached.sources {
			names[s.Name] = true
		}
	}
	closeParts(parts)
	for _, p := range parts {
		p.pkg = nil
	}
	var (
		whole     declcfg.Catalog
		sources   []SourceFile
		manifests = manifests{}
		spill     = &spill{log: b.log}
	)
	defer spill.close()
	for _, file := range sortedNames(names) {
		split, source, err := b.read(ctx, file, func(r *declcfg.Reader, bundle *declcfg.Bundle) error {
			if bundle.Package != name {
				bundle.DropObjects()
				return nil
			}
			taken, err := spill.takeRead(r, bundle)
			manifests.add(bundle, taken)
			return err
		})
		if err != nil {
			return nil, err
		}
		if c := split[name]; c != nil {
			whole.Append(c)
			sources = append(sources, source)
		}
	}
	return b.encode(name, &whole, sources, manifests)
}

// group loads files that probably contain whole packages, and encodes those.
func (b *builder) group(ctx context.Context, files []string) (map[string]*part, error) {
	parts := map[string]*part{}
	catalogs := map[string]*declcfg.Catalog{}
	found := map[string]manifests{}
	spill := &spill{log: b.log}
	defer spill.close()
	var errs []error
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		split, source, err := b.read(ctx, file, func(r *declcfg.Reader, bundle *declcfg.Bundle) error {
			m := found[bundle.Package]
			if m == nil {
				m = manifests{}
				found[bundle.Package] = m
			}
			taken, err := spill.takeRead(r, bundle)
			m.add(bundle, taken)
			return err
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for name, c := range split {
			p := parts[name]
			if p == nil {
				p = &part{}
				parts[name], catalogs[name] = p, &declcfg.Catalog{}
			}
			catalogs[name].Append(c)
			p.sources = append(p.sources, source)
			p.dirty = p.dirty || b.dirty[file]
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, name := range sortedNames(parts) {
		if _, fresh := b.fresh[name]; !fresh {
			p := parts[name]
			p.pkg, p.err = b.encode(name, catalogs[name], p.sources, found[name])
		}
		delete(catalogs, name)
	}
	return parts, nil
}

// read loads one file and divides it by package. spill takes and drops the manifests of each bundle before the next
// bundle is read.
func (b *builder) read(ctx context.Context, name string,
	spill func(*declcfg.Reader, *declcfg.Bundle) error) (map[string]*declcfg.Catalog, SourceFile, error) {
	f, err := b.fsys.Open(name)
	if err != nil {
		return nil, SourceFile{}, err
	}
	defer f.Close()
	counted := &digester{r: f, hash: sha256.New()}
	reader, ok := b.readers.Get().(*declcfg.Reader)
	if !ok {
		reader = declcfg.NewReader(declcfg.LoadOptions{Lazy: true, Warn: func(pos declcfg.Position, text string) {
			b.log.Warn(text, "position", pos.String())
		}})
	}
	defer b.readers.Put(reader)
	reader.Reset(counted, name)
	c := &declcfg.Catalog{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, SourceFile{}, err
		}
		blob, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if bundle, ok := blob.(*declcfg.Bundle); ok && err == nil {
			err = spill(reader, bundle)
		}
		if err != nil {
			return nil, SourceFile{}, err
		}
		c.Add(blob)
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return nil, SourceFile{}, err
	}
	parts := c.ByPackage()
	source := SourceFile{Name: name, Size: counted.size, Packages: len(parts)}
	counted.hash.Sum(source.Digest[:0])
	return parts, source, nil
}

// groupFiles groups files by the first path element below their common directory: most catalogs have a directory or
// file per package.
func groupFiles(files []string) [][]string {
	prefix := ""
	for len(files) > 0 {
		first, _, ok := strings.Cut(files[0][len(prefix):], "/")
		if !ok {
			break
		}
		deeper := prefix + first + "/"
		if slices.ContainsFunc(files, func(f string) bool { return !strings.HasPrefix(f, deeper) }) {
			break
		}
		prefix = deeper
	}
	var groups [][]string
	at := map[string]int{}
	for _, f := range files {
		key, _, _ := strings.Cut(f[len(prefix):], "/")
		key = path.Join(prefix, key)
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}
