package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
)

// index lists the files and documents of a directory.
type index struct {
	files  []*file // in reading order, including those without documents
	byName map[string]*file
}

// file is a file of the catalog.
type file struct {
	name string      // slash-separated, relative to the directory
	info fs.FileInfo // of the name itself, which may be a symbolic link
	docs []*document // in the order of the file
}

// document is the position of a blob in a file.
type document struct {
	file              *file
	n                 int // the index of the document in the file
	schema, pkg, name string
	start, end        int64
	json              bool
	version           *declcfg.VersionRelease // of a bundle that was read; nil if it has none
}

// key identifies a blob. Blobs of unknown schemas may share a key.
type key struct{ schema, pkg, name string }

func (d *document) key() key { return key{d.schema, d.pkg, d.name} }

func keyOf(b declcfg.Blob) key { return key{b.BlobSchema(), b.BlobPackage(), b.BlobName()} }

// Load reads the catalog: completely for the packages that whole selects, as skeletons for the others (see
// [declcfg.LoadOptions]). A nil function selects all. Errors are those of [declcfg.Load].
func (d *Dir) Load(ctx context.Context, whole func(pkg string) bool) (*declcfg.Catalog, error) {
	fsys, ix, err := d.list()
	if err != nil {
		return nil, err
	}
	var appeared sync.Map // files that were not there when the directory was listed
	o := declcfg.LoadOptions{Dir: d.name, Jobs: d.options.Jobs, Warn: d.options.Warn,
		Skeleton: whole != nil, Unknown: true, Whole: whole}
	o.Document = func(b declcfg.Blob, doc declcfg.Document) {
		f := ix.byName[doc.File]
		if f == nil {
			appeared.Store(doc.File, nil)
			return
		}
		// Each file is read by one goroutine, so this needs no lock.
		f.docs = append(f.docs, &document{file: f, n: len(f.docs),
			schema: b.BlobSchema(), pkg: b.BlobPackage(), name: b.BlobName(),
			start: doc.Start, end: doc.End, json: doc.JSON})
	}
	c, err := declcfg.Load(ctx, fsys, o)
	if err != nil {
		return nil, err
	}
	for name := range appeared.Range {
		return nil, fmt.Errorf("%s: %w", name, ErrChanged)
	}
	d.index = ix
	return c, nil
}

// LoadStubs works like [Dir.Load] with skeletons, except that bundles of packages outside scope are not parsed: stubs
// with names and images replace them.
func (d *Dir) LoadStubs(ctx context.Context, scope func(pkg string) bool) (*declcfg.Catalog, error) {
	fsys, ix, err := d.list()
	if err != nil {
		return nil, err
	}
	o := declcfg.LoadOptions{Dir: d.name, Jobs: d.options.Jobs, Warn: d.options.Warn,
		Skeleton: true, Unknown: true, Images: true}
	x, err := declcfg.NewIndex(ctx, fsys, o)
	if errors.Is(err, declcfg.ErrIrregular) {
		return d.Load(ctx, func(string) bool { return false })
	}
	if err != nil {
		return nil, err
	}
	c, err := x.Stubs(ctx, scope)
	if err != nil {
		return nil, err
	}
	for i := range x.Documents() {
		doc := &x.Documents()[i]
		f := ix.byName[doc.File]
		if f == nil {
			return nil, fmt.Errorf("%s: %w", doc.File, ErrChanged)
		}
		f.docs = append(f.docs, &document{file: f, n: len(f.docs), schema: doc.Schema, pkg: doc.Package, name: doc.Name,
			start: doc.Start, end: doc.End, json: doc.JSON})
	}
	d.index = ix
	return c, nil
}

// list finds the files of the catalog.
func (d *Dir) list() (fs.FS, *index, error) {
	d.index = nil
	fsys := d.root.FS()
	names, err := declcfg.Files(fsys)
	if err != nil {
		return nil, nil, err
	}
	ix := &index{files: make([]*file, 0, len(names)), byName: make(map[string]*file, len(names))}
	for _, name := range names {
		info, err := d.root.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		f := &file{name: name, info: info}
		ix.files = append(ix.files, f)
		ix.byName[name] = f
	}
	return fsys, ix, nil
}
