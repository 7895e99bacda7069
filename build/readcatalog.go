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
	read     bool // read in the first pass
	warned   bool
}

type warning struct {
	at   declcfg.Position
	text string
}

// remembers reports whether results are cached.
func (r *reading) remembers() bool { return r.o.Cache.remembers() && r.o.Program != "" }

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
	verdicts, err := r.readFirst(all)
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
			return nil, errReadAll // reading all again reports all problems in their order
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
	return r.result(), nil
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
	o := declcfg.LoadOptions{Dir: r.o.Dir, Skeleton: true, Jobs: r.o.Jobs, Files: names,
		Warn: r.recordWarning, Read: r.o.Read}
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

// recordWarning records a warning, except in the second pass, which repeats those of the first.
func (r *reading) recordWarning(at declcfg.Position, text string) {
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

// result returns the result, without files that have no blobs.
func (r *reading) result() []File {
	var out []File
	for _, f := range r.files {
		if len(f.packages) > 0 {
			out = append(out, File{Path: f.name, Packages: f.packages, Digest: f.digest})
		}
	}
	return out
}

// heldWeight limits the blobs in memory while a catalog is validated, besides those of one package: approximately in
// bytes, without manifests, which are not validated.
const heldWeight = 8 << 20

// verdict is the state of a package after the first pass over all files. Its zero value is a package without anything
// to validate.
type verdict int

const (
	isValid   verdict = iota + 1 // unless it is split
	isInvalid                    // unless it is split
	isSplit                      // more of its blobs appeared after the earlier ones had been released
)

// pieces validates packages in a stream of blobs. It releases packages when they take too much memory: the blobs of a
// package are usually adjacent, so that the package is complete by then. Otherwise it is marked as split. The validity
// of a package does not depend on other packages or on blobs of unknown schemas.
type pieces struct {
	limit    int
	held     map[string]*declcfg.Catalog
	weight   int
	last     string // the most recent package
	verdicts map[string]verdict
}

func newPieces(limit int) *pieces {
	return &pieces{limit: limit, held: map[string]*declcfg.Catalog{}, verdicts: map[string]verdict{}}
}

// add takes the next blob.
func (p *pieces) add(b declcfg.Blob) {
	pkg := packageOf(b)
	if declcfg.Rank(b.BlobSchema()) == declcfg.RankOther {
		return
	}
	if p.weight > p.limit && pkg != p.last {
		p.validateHeld()
	}
	p.last = pkg
	if _, gone := p.verdicts[pkg]; gone {
		p.verdicts[pkg] = isSplit
		return
	}
	c := p.held[pkg]
	if c == nil {
		c = &declcfg.Catalog{}
		p.held[pkg] = c
	}
	c.Add(b)
	p.weight += blobWeight(b)
}

// validateHeld validates the held packages and releases them.
func (p *pieces) validateHeld() {
	for pkg, c := range p.held {
		p.verdicts[pkg] = isValid
		if c.Validate() != nil {
			p.verdicts[pkg] = isInvalid
		}
	}
	clear(p.held)
	p.weight = 0
}

// blobWeight is the approximate memory of a blob in bytes.
func blobWeight(b declcfg.Blob) int {
	n := 500
	properties := func(ps []declcfg.Property) {
		for _, p := range ps {
			n += 50 + len(p.Value)
		}
	}
	unknown := func(fs []declcfg.Field) {
		for _, f := range fs {
			n += 50 + len(f.Value)
		}
	}
	switch b := b.(type) {
	case *declcfg.Package:
		properties(b.Properties)
		unknown(b.Unknown)
		n += len(b.Description)
		if b.Icon != nil {
			n += len(b.Icon.Data)
		}
	case *declcfg.Channel:
		properties(b.Properties)
		unknown(b.Unknown)
		for _, e := range b.Entries {
			n += 150 + len(e.SkipRange) + 50*len(e.Skips)
		}
	case *declcfg.Bundle:
		properties(b.Properties)
		unknown(b.Unknown)
		for _, i := range b.RelatedImages {
			n += 50 + len(i.Name) + len(i.Image)
		}
	case *declcfg.Deprecations:
		unknown(b.Unknown)
		for _, e := range b.Entries {
			n += 100 + len(e.Message)
		}
	}
	return n
}

// readFirst is the first pass over files: it determines their packages and validates them.
func (r *reading) readFirst(which []int) (map[string]verdict, error) {
	p := newPieces(r.held)
	of := make([]map[string]bool, len(r.files))
	err := r.walk(which, func(f *sourceFile, b declcfg.Blob) error {
		i := r.index[f.name]
		if of[i] == nil {
			of[i] = map[string]bool{}
		}
		of[i][packageOf(b)] = true
		p.add(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.validateHeld()
	for _, i := range which {
		r.files[i].read = true
		r.files[i].packages = slices.Sorted(maps.Keys(of[i]))
	}
	return p.verdicts, nil
}

// second is the second pass over the files of some packages, and validates these in parts. A file is read once per part
// that shares it: the number of parts is bounded so that this is at most twice the work.
func (r *reading) second(packages []string, in map[string][]int) error {
	for _, part := range r.groupPackages(packages, in) {
		wanted := map[string]bool{}
		var which []int
		for _, pkg := range part {
			wanted[pkg] = true
			which = append(which, in[pkg]...)
		}
		slices.Sort(which)
		c := &declcfg.Catalog{}
		err := r.walk(slices.Compact(which), func(_ *sourceFile, b declcfg.Blob) error {
			if declcfg.Rank(b.BlobSchema()) != declcfg.RankOther && wanted[packageOf(b)] {
				c.Add(b)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if c.Validate() != nil {
			return errReadAll
		}
	}
	return nil
}

// partBytes is the total size of files that are read together in the second pass if they share little with others.
// About a fifth of it is in memory.
const partBytes = 64 << 20

// groupPackages groups packages for the second pass.
func (r *reading) groupPackages(packages []string, in map[string][]int) [][]string {
	uses := map[int]int64{}
	for _, pkg := range packages {
		for _, i := range in[pkg] {
			uses[i]++
		}
	}
	var all, shared int64
	for i, n := range uses {
		all += r.files[i].size
		if n > 1 {
			shared += r.files[i].size
		}
	}
	n := min(1+all/partBytes, max(1, all/max(1, shared)), int64(len(packages)))
	if n <= 1 {
		if len(packages) == 0 {
			return nil
		}
		return [][]string{packages}
	}
	// Split by the bytes of a package, including its part of a shared file.
	var out [][]string
	var part []string
	var size int64
	for _, pkg := range packages {
		part = append(part, pkg)
		for _, i := range in[pkg] {
			size += r.files[i].size / uses[i]
		}
		if size*n >= all {
			out, part, size = append(out, part), nil, 0
		}
	}
	if len(part) > 0 {
		out = append(out, part)
	}
	return out
}
