package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
)

// ReadOptions say how [ReadCatalog] reads.
type ReadOptions struct {
	// Jobs is how many files are read at a time; one per processor if zero.
	Jobs int
	// Warn, unless nil, is told of what is accepted but surely not meant. It may be called from several goroutines.
	Warn func(declcfg.Position, string)
	// Known, unless nil, remembers which files and packages have been found to be valid.
	Known *Known
	// Program tells which program validates: what another one has found is not believed. Nothing is remembered if it is
	// empty.
	Program string
}

// ReadCatalog validates the catalog in a directory and tells which files it consists of. The answer does not depend on what
// is known, nor do the error and the warnings; but packages of which all files are known, and were valid, are neither parsed nor
// validated.
func ReadCatalog(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	if o.Known != nil && o.Program != "" {
		files, err := readChanged(ctx, fsys, o)
		if !errors.Is(err, errReadAll) {
			return files, err
		}
	}
	c, err := declcfg.Load(ctx, fsys, declcfg.LoadOptions{Skeleton: true, Jobs: o.Jobs, Warn: o.Warn})
	if err != nil {
		return nil, err
	}
	if err := declcfg.Validate(c); err != nil {
		return nil, err
	}
	return FilesOf(c)
}

// errReadAll says that the whole catalog has to be read, to find out what is to be said about it.
var errReadAll = errors.New("the whole catalog has to be read")

// reading is one run of [readChanged].
type reading struct {
	ctx   context.Context
	fsys  fs.FS
	o     ReadOptions
	files []sourceFile // by name
	index map[string]int

	catalog declcfg.Catalog
	mu      sync.Mutex
	warned  []warning
}

// sourceFile is a file of a catalog directory.
type sourceFile struct {
	name     string
	size     int64
	digest   digest.Digest
	packages []string
	loaded   bool // its blobs are in the catalog that was read
	warned   bool
}

type warning struct {
	at   declcfg.Position
	text string
}

// readChanged reads what is not known. It fails with errReadAll where it cannot vouch for the outcome being that of reading
// everything.
func readChanged(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	r := &reading{ctx: ctx, fsys: fsys, o: o, index: map[string]int{}}
	if err := r.list(); err != nil {
		return nil, errReadAll
	}
	groups := groupFiles(r.files)
	if len(groups) > maxGroups {
		return nil, errReadAll
	}
	var unknown [][]int
	var load []int
	for _, g := range groups {
		if !r.recall(g) {
			unknown, load = append(unknown, g), append(load, g...)
		}
	}
	if err := r.load(load); err != nil {
		return nil, err
	}
	packages := r.packages()
	affected := map[string]bool{}
	load = nil
	for pkg, in := range packages {
		if _, ok := o.Known.Notes.Get(r.validNote(pkg, in)); ok {
			continue
		}
		affected[pkg] = true
		for _, i := range in {
			if !r.files[i].loaded {
				r.files[i].loaded = true
				load = append(load, i)
			}
		}
	}
	if err := r.load(load); err != nil {
		return nil, err
	}
	if err := declcfg.Validate(only(&r.catalog, affected)); err != nil {
		return nil, errReadAll // with all problems, in their order
	}
	for _, g := range unknown {
		r.remember(g)
	}
	for pkg := range affected {
		o.Known.Notes.Put(r.validNote(pkg, packages[pkg]), []byte("valid"))
	}
	r.warn()
	return r.answer(), nil
}

// packages tells which files have blobs of each package, in the order of their names.
func (r *reading) packages() map[string][]int {
	out := map[string][]int{}
	for i, f := range r.files {
		for _, pkg := range f.packages {
			out[pkg] = append(out[pkg], i)
		}
	}
	return out
}

// load adds the blobs of files to the catalog, and notes which packages they are of.
func (r *reading) load(which []int) error {
	if len(which) == 0 {
		return nil
	}
	slices.Sort(which)
	names := make([]string, len(which))
	for n, i := range which {
		names[n] = r.files[i].name
	}
	witness := newWitness(r.fsys)
	c, err := declcfg.Load(r.ctx, witness, declcfg.LoadOptions{
		Skeleton: true, Jobs: r.o.Jobs, Files: names,
		Warn: func(at declcfg.Position, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.warned = append(r.warned, warning{at, text})
			if i, ok := r.index[at.File]; ok {
				r.files[i].warned = true
			}
		},
	})
	if err != nil {
		if r.ctx.Err() != nil {
			return err
		}
		return errReadAll
	}
	files, err := FilesOf(c)
	if err != nil {
		return errReadAll
	}
	for _, i := range which {
		r.files[i].loaded = true
		if witness.sum(r.files[i].name) != r.files[i].digest {
			return fmt.Errorf("%s: %w", r.files[i].name, layers.ErrChanged)
		}
	}
	for _, f := range files {
		r.files[r.index[f.Path]].packages = f.Packages
	}
	r.catalog.Append(c)
	return nil
}

// warn tells what was noticed, in the order of the files.
func (r *reading) warn() {
	if r.o.Warn == nil {
		return
	}
	slices.SortStableFunc(r.warned, func(a, b warning) int {
		return cmp.Or(cmp.Compare(a.at.File, b.at.File), cmp.Compare(a.at.Line, b.at.Line))
	})
	for _, w := range r.warned {
		r.o.Warn(w.at, w.text)
	}
}

// answer is what the caller gets: files without blobs are not part of a catalog.
func (r *reading) answer() []File {
	var out []File
	for _, f := range r.files {
		if len(f.packages) > 0 {
			out = append(out, File{Path: f.name, Packages: f.packages, Digest: f.digest})
		}
	}
	return out
}

// only is the part of a catalog that is about some packages.
func only(c *declcfg.Catalog, packages map[string]bool) *declcfg.Catalog {
	out := &declcfg.Catalog{}
	for b, err := range c.Blobs() {
		if err == nil && packages[packageOf(b)] {
			out.Add(b)
		}
	}
	return out
}
