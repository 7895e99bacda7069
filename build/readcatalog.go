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
	"github.com/operator-bindery/bindery/internal/layers"
)

// ReadOptions configure [ReadCatalog].
type ReadOptions struct {
	// Jobs is the number of files read in parallel; one per processor if zero.
	Jobs int
	// Warn, unless nil, is called with warnings about probable mistakes. It may be called from several goroutines.
	Warn func(declcfg.Position, string)
	// Read, unless nil, is called with the number of bytes that were read. It may be called from several goroutines.
	Read func(n int)
	// Dir, unless empty, is the directory that the catalog is in, see [declcfg.LoadOptions].
	Dir string
	// Cache, unless nil, caches which files and packages are valid.
	Cache *Cache
	// Program identifies the validating program: results of other programs are ignored. Nothing is cached if it is
	// empty.
	Program string
}

// ReadCatalog validates the catalog in a directory and returns its files. The result, the error and the warnings do not
// depend on the cache, but packages whose files are all known to be valid are neither parsed nor validated. A valid
// catalog is never completely in memory unless the blobs of its packages are interleaved in its files.
func ReadCatalog(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	files, err := readInPieces(ctx, fsys, o, heldWeight)
	if !errors.Is(err, errReadAll) {
		return files, err
	}
	return readWhole(ctx, fsys, o)
}

// readWhole reads and validates the catalog as a whole, to report all problems.
func readWhole(ctx context.Context, fsys fs.FS, o ReadOptions) ([]File, error) {
	c, err := declcfg.Load(ctx, fsys, declcfg.LoadOptions{Dir: o.Dir, Skeleton: true, Jobs: o.Jobs, Warn: o.Warn})
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return FilesOf(c)
}

// errReadAll reports that the whole catalog must be read to collect all problems and warnings.
var errReadAll = errors.New("the whole catalog has to be read")

// maxWarned is the maximum number of warnings held until the catalog is known to be valid. A catalog with more is read
// as a whole.
const maxWarned = 10_000

// reading is one run of [readInPieces].
type reading struct {
	ctx   context.Context
	fsys  fs.FS
	o     ReadOptions
	held  int          // memory limit in bytes of incomplete packages
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

// remembers reports whether results are cached.
func (r *reading) remembers() bool { return r.o.Cache != nil && r.o.Program != "" }

// readInPieces reads the files that are not cached. It fails with errReadAll if the result might differ from that of
// reading everything.
func readInPieces(ctx context.Context, fsys fs.FS, o ReadOptions, held int) ([]File, error) {
	r := &reading{ctx: ctx, fsys: fsys, o: o, held: held, index: map[string]int{}}
	if err := r.list(); err != nil {
		return nil, errReadAll
	}
	groups := groupFiles(r.files)
	if r.remembers() && len(groups) > maxGroups {
		o.Cache = nil
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
			if _, ok := o.Cache.notes.Get(r.validNote(pkg, in)); ok {
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
			o.Cache.notes.Put(r.validNote(pkg, packages[pkg]), []byte("valid"))
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

// walk yields the blobs of files. It compares the digests of the files, and sets missing ones.
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
	o := declcfg.LoadOptions{Dir: r.o.Dir, Skeleton: true, Jobs: r.o.Jobs, Files: names, Warn: r.note, Read: r.o.Read}
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

// note records a warning, except in the second pass, which repeats those of the first.
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

// warn reports the recorded warnings, in the order of the files.
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

// answer returns the result, without files that have no blobs.
func (r *reading) answer() []File {
	var out []File
	for _, f := range r.files {
		if len(f.packages) > 0 {
			out = append(out, File{Path: f.name, Packages: f.packages, Digest: f.digest})
		}
	}
	return out
}
