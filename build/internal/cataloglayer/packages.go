package cataloglayer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// The directories of a catalog image.
const (
	ConfigsDir = "configs" // the catalog
	CacheDir   = "cache"   // the native serve cache
)

// Notices are the warnings about the packages of one layer. The layers of both compressions share it, and may be
// written at the same time.
type Notices struct {
	mu   sync.Mutex
	list []string
}

func (n *Notices) set(list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
}

// Get returns the notices of the last build of the layer; none for nil.
func (n *Notices) Get() []string {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}

// Packages is the layer of some packages: their catalogs and their caches. The names of the files are those in the
// image. The notices are nil for a layer without caches. Temporary files are in the directory temp.
func (c *Caches) Packages(group []opmcache.Package, temp string) (layers.Layer, *Notices) {
	if len(group) == 0 {
		return Empty(), nil
	}
	var l layers.Layer
	var names []string
	for _, p := range group {
		if p.Name != "" {
			names = append(names, p.Name)
		}
		l.Entries = append(l.Entries, p.Files...)
	}
	l.Name = strings.Join(names, ", ")
	if len(names) == 0 {
		l.Name = "blobs of no package"
	}
	if !c.perPackage() {
		return l, nil
	}
	notices := new(Notices)
	l.More = func(ctx context.Context) ([]layers.Entry, error) { return c.entries(ctx, group, temp, notices) }
	l.MoreID = c.id(group)
	return l, notices
}

// Empty is the layer of a catalog without packages: the directory must exist, because the server and other clients look
// for it.
func Empty() layers.Layer {
	return layers.Layer{Name: "empty catalog", Entries: []layers.Entry{layers.Dir(ConfigsDir, 0o755)}}
}

// Sorted checks the names of the packages and sorts by them, and the files of each by theirs: a cache must depend only
// on the visible content of the image.
func Sorted(files map[string][]layers.Entry) ([]opmcache.Package, error) {
	var all []opmcache.Package
	var err error
	for name, es := range files {
		if name != "" {
			err = errors.Join(err, CheckName(name))
		}
		slices.SortFunc(es, ByPath)
		all = append(all, opmcache.Package{Name: name, Files: es})
	}
	slices.SortFunc(all, func(a, b opmcache.Package) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// ByPath orders files as a walk through their directories meets them.
func ByPath(a, b layers.Entry) int {
	return slices.Compare(strings.Split(a.Name, "/"), strings.Split(b.Name, "/"))
}

// CheckName refuses names of packages that are no directory name or have a special meaning in a layer.
func CheckName(name string) error {
	bad := func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) }
	if !utf8.ValidString(name) || !fs.ValidPath(name) || name == "." || len(name) > 200 ||
		strings.ContainsFunc(name, bad) || strings.HasPrefix(name, ".wh.") {
		return fmt.Errorf("invalid name of a package: %.200q", name)
	}
	if err := declcfg.CheckDirectoryName(name); err != nil {
		return fmt.Errorf("invalid name of a package: %.200q %w", name, err)
	}
	return nil
}

// entries makes the caches of the packages of one layer. Of several packages only one at a time is in memory.
func (c *Caches) entries(ctx context.Context, group []opmcache.Package, temp string,
	notices *Notices) ([]layers.Entry, error) {
	keep := func(entries []layers.Entry) ([]layers.Entry, error) { return entries, nil }
	if len(group) > 1 {
		s := newEntrySpool(temp)
		keep = func(entries []layers.Entry) ([]layers.Entry, error) { return s.addEntries(ctx, entries) }
	}
	var lists [][]layers.Entry
	if c.Native != nil {
		lists = append(lists, []layers.Entry{layers.Dir(CacheDir, 0o755)})
	}
	var all []string
	for _, p := range group {
		entries, notices, err := c.ofPackage(ctx, p)
		if err == nil {
			entries, err = keep(entries)
		}
		if err != nil {
			return nil, fmt.Errorf("cache of package %q: %w", p.Name, err)
		}
		all = append(all, notices...)
		lists = append(lists, entries)
	}
	notices.set(all)
	return joined(lists...)
}

// ofPackage makes the caches of one package.
func (c *Caches) ofPackage(ctx context.Context,
	files opmcache.Package) (entries []layers.Entry, notices []string, err error) {
	p, err := load(ctx, files)
	if err != nil {
		return nil, nil, err
	}
	if c.Native != nil {
		f, err := c.Native(p)
		if err != nil {
			return nil, nil, err
		}
		if f.Name == "" || strings.Contains(f.Name, "/") {
			return nil, nil, fmt.Errorf("%q is no file name", f.Name)
		}
		entries, notices = append(entries, layers.Bytes(path.Join(CacheDir, f.Name), 0o644, f.Content)), f.Notices
	}
	extra, err := c.extras(p)
	return append(entries, extra...), notices, err
}

// ids identify the caches in layers of packages, and the program that writes them. They are nil if one of the caches
// has no ID.
func (c *Caches) ids() []string {
	var ids []string
	if c.Native != nil {
		if c.NativeID == "" {
			return nil
		}
		ids = append(ids, CacheDir, c.NativeID)
	}
	for _, x := range c.Extra {
		if x.Package != nil {
			ids = append(ids, x.Dir, x.ID)
		}
	}
	return ids
}

// id identifies the inputs of the caches of packages other than the bytes of their files.
func (c *Caches) id(group []opmcache.Package) string {
	ids := c.ids()
	if ids == nil {
		return ""
	}
	about := [][]string{ids}
	for _, p := range group {
		names := []string{p.Name}
		for _, e := range p.Files {
			names = append(names, e.Name)
		}
		about = append(about, names)
	}
	return fmt.Sprintf("%q", about)
}

// load reads the catalog of one package from the files for the image.
func load(ctx context.Context, files opmcache.Package) (Package, error) {
	p := Package{Name: files.Name, Catalog: &declcfg.Catalog{}}
	for _, e := range files.Files {
		source, err := readInto(ctx, p.Catalog, e)
		if err != nil {
			return Package{}, fmt.Errorf("%s: %w", e.Name, err)
		}
		p.Sources = append(p.Sources, source)
	}
	return p, nil
}

// readInto adds the blobs of a file to the catalog.
func readInto(ctx context.Context, all *declcfg.Catalog, e layers.Entry) (_ serve.SourceFile, err error) {
	r, err := e.Open()
	if err != nil {
		return serve.SourceFile{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s := serve.SourceFile{Name: strings.TrimPrefix(e.Name, ConfigsDir+"/"), Size: e.Size, Packages: 1}
	h := sha256.New()
	tee := io.TeeReader(r, h)
	c, err := declcfg.Read(ctx, tee, s.Name, declcfg.LoadOptions{Lazy: true})
	if err != nil {
		return serve.SourceFile{}, err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return serve.SourceFile{}, err
	}
	h.Sum(s.Digest[:0])
	if e.Digest != "" && digest.NewDigestFromBytes(digest.SHA256, s.Digest[:]) != e.Digest {
		return serve.SourceFile{}, layers.ErrChanged
	}
	all.Append(c)
	return s, nil
}

// joined merges the entries of several caches. Directories that more than one of them has must be the same in all.
func joined(lists ...[]layers.Entry) ([]layers.Entry, error) {
	var all []layers.Entry
	dirs := map[string]fs.FileMode{}
	for _, list := range lists {
		for _, e := range list {
			if e.Kind == layers.KindDir {
				mode, known := dirs[e.Name]
				if known && mode != e.Mode {
					return nil, fmt.Errorf("directory %q has two modes, %v and %v", e.Name, mode, e.Mode)
				}
				if known {
					continue
				}
				dirs[e.Name] = e.Mode
			}
			all = append(all, e)
		}
	}
	return all, nil
}
