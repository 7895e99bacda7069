package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	// Warn, unless nil, is called with what is accepted but surely not meant. It may be called from several goroutines.
	Warn func(declcfg.Position, string)
	// Dir, unless empty, is the directory that the catalog is in, see [declcfg.LoadOptions].
	Dir string
	// Known, unless nil, remembers which files and packages have been found to be valid.
	Known *Known
	// Program identifies the program that validates: what another one has found is not believed. Nothing is remembered
	// if it is empty.
	Program string
}

// ReadCatalog validates the catalog in a directory and returns which files it consists of. The answer does not depend
// on what is known, nor do the error and the warnings; but packages of which all files are known, and were valid, are
// neither parsed nor validated. A valid catalog is never in memory as a whole, unless the blobs of its packages are all
// mixed up; see [pieces].
func ReadCatalog(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	files, err := readInPieces(ctx, fsys, o, heldWeight)
	if !errors.Is(err, errReadAll) {
		return files, err
	}
	return readWhole(ctx, fsys, o)
}

// readWhole reads and validates the catalog as a whole, to report everything that is wrong with it.
func readWhole(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	c, err := declcfg.Load(ctx, fsys, declcfg.LoadOptions{Dir: o.Dir, Skeleton: true, Jobs: o.Jobs, Warn: o.Warn})
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

// maxWarned is how many warnings are held back until all is known to be valid. Of a catalog with more they are reported
// while it is read as a whole.
const maxWarned = 10_000

// reading is one run of [readInPieces].
type reading struct {
	ctx   context.Context
	fsys  fs.FS
	o     ReadOptions
	held  int          // bytes of blobs that may wait for more of their packages
	files []sourceFile // by name
	index map[string]int

	mu     sync.Mutex
	warned []warning
}

// sourceFile is a file of a catalog directory.
type sourceFile struct {
	name     string
	size     int64
	digest   digest.Digest
	packages []string
	read     bool // in the first pass
	warned   bool
}

type warning struct {
	at   declcfg.Position
	text string
}

// remembers is true if what is found out is kept from one reading to the next.
func (r *reading) remembers() bool { return r.o.Known != nil && r.o.Program != "" }

// readInPieces reads what is not known. It fails with errReadAll where it cannot vouch for the outcome being that of
// reading everything.
func readInPieces(ctx context.Context, fsys fs.FS, o ReadOptions, held int) ([]File, error) {
	r := &reading{ctx: ctx, fsys: fsys, o: o, held: held, index: map[string]int{}}
	if err := r.list(); err != nil {
		return nil, errReadAll
	}
	groups := groupFiles(r.files)
	if r.remembers() && len(groups) > maxGroups {
		o.Known = nil
		return readInPieces(ctx, fsys, o, held)
	}
	var unknown [][]int
	var all []int
	for _, g := range groups {
		if !r.remembers() || !r.recall(g) {
			unknown, all = append(unknown, g), append(all, g...)
		}
	}
	verdicts, err := r.first(all)
	if err != nil {
		return nil, err
	}
	packages := r.packages()
	var affected, again []string
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		in := packages[pkg]
		if r.remembers() {
			if _, ok := o.Known.Notes.Get(r.validNote(pkg, in)); ok {
				continue
			}
		}
		affected = append(affected, pkg)
		whole := !slices.ContainsFunc(in, func(i int) bool { return !r.files[i].read })
		switch v := verdicts[pkg]; {
		case !whole || v == isSplit:
			again = append(again, pkg)
		case v == isInvalid:
			return nil, errReadAll // with all problems, in their order
		}
	}
	if err := r.second(again, packages); err != nil {
		return nil, err
	}
	if r.remembers() {
		for _, g := range unknown {
			r.remember(g)
		}
		for _, pkg := range affected {
			o.Known.Notes.Put(r.validNote(pkg, packages[pkg]), []byte("valid"))
		}
	}
	r.warn()
	return r.answer(), nil
}

// packages returns which files have blobs of each package, in the order of their names.
func (r *reading) packages() map[string][]int {
	out := map[string][]int{}
	for i, f := range r.files {
		for _, pkg := range f.packages {
			out[pkg] = append(out[pkg], i)
		}
	}
	return out
}

// walk hands over the blobs of files. What it reads has the digests of the files; where there is none yet, it becomes
// that.
func (r *reading) walk(which []int, fn func(*sourceFile, declcfg.Blob) error) error {
	if len(which) == 0 {
		return nil
	}
	slices.Sort(which)
	names := make([]string, len(which))
	for n, i := range which {
		names[n] = r.files[i].name
	}
	witness := newWitness(r.fsys)
	o := declcfg.LoadOptions{Dir: r.o.Dir, Skeleton: true, Jobs: r.o.Jobs, Files: names, Warn: r.note}
	err := declcfg.WalkBlobs(r.ctx, witness, o, func(b declcfg.Blob) error {
		return fn(&r.files[r.index[b.Position().File]], b)
	})
	if err != nil {
		if r.ctx.Err() != nil {
			return err
		}
		return errReadAll
	}
	if len(r.warned) >= maxWarned {
		return errReadAll
	}
	for _, i := range which {
		f := &r.files[i]
		got := witness.sum(f.name)
		switch {
		case got.digest == "":
			return errReadAll
		case f.digest == "":
			f.digest, f.size = got.digest, got.size
		case f.digest != got.digest:
			return fmt.Errorf("%s: %w", f.name, layers.ErrChanged)
		}
	}
	return nil
}

// note takes note of a warning. Those of a file that is read a second time are noted already.
func (r *reading) note(at declcfg.Position, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.index[at.File]
	if ok && r.files[i].read || len(r.warned) >= maxWarned {
		return
	}
	r.warned = append(r.warned, warning{at, text})
	if ok {
		r.files[i].warned = true
	}
}

// warn reports what was noticed, in the order of the files.
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
