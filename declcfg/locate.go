package declcfg

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Validated describes a valid catalog.
type Validated struct {
	// Packages is the number of packages that any blob names.
	Packages int
	// Notes are about valid but probably unintended content: a replaced bundle without an entry in the channel. There
	// are at most 100; MoreNotes is the number of the others.
	Notes     []Problem
	MoreNotes int
}

// ValidateFS reads and validates the catalog in fsys. Its error is that of [Load] or of [Catalog.Validate], with the
// line of the exact entry or property of each problem instead of its blob's. A valid catalog is read package by
// package; an invalid one is then loaded completely without manifests, to find all problems.
func ValidateFS(ctx context.Context, fsys fs.FS, o LoadOptions) (*Validated, error) {
	o.Skeleton = true
	warned := heldWarnings{most: maxHeldWarnings}
	if valid, ok := validateByPackage(ctx, fsys, o, &warned); ok {
		for _, w := range warned.all {
			o.Warn(w.at, w.text)
		}
		refinePositions(fsys, valid.Notes, o.Limits)
		return valid, nil
	}
	c, err := loadReadable(ctx, fsys, o)
	if err != nil {
		return nil, err
	}
	v := validate(&c.Catalog, false, c.problems)
	var invalid *ValidationError
	if err := v.problems.err(); errors.As(err, &invalid) {
		refinePositions(fsys, invalid.Problems, o.Limits)
		return nil, err
	}
	refinePositions(fsys, v.notes, o.Limits)
	parts := c.ByPackage()
	delete(parts, "")
	return &Validated{Packages: len(parts), Notes: v.notes, MoreNotes: v.moreNotes}, nil
}

// maxHeldWarnings is how many warnings are held back until a catalog is known to be valid. With more, the catalog is
// loaded completely.
const maxHeldWarnings = 10_000

// heldWarnings collects warnings. It is safe for concurrent use.
type heldWarnings struct {
	mu   sync.Mutex
	most int
	all  []heldWarning
	full bool
}

type heldWarning struct {
	at   Position
	text string
}

func (h *heldWarnings) add(at Position, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full = h.full || len(h.all) == h.most; !h.full {
		h.all = append(h.all, heldWarning{at, text})
	}
}

// largeDocument is the size in bytes of a document that must not be in memory twice.
const largeDocument = 8 << 20

// validateByPackage validates one package after the other. It stops at the first problem.
func validateByPackage(ctx context.Context, fsys fs.FS, o LoadOptions, warned *heldWarnings) (*Validated, bool) {
	o.Omitted = nil
	if o.Warn != nil {
		o.Warn = warned.add
	}
	v := &validator{}
	packages := 0
	part, name := &Catalog{}, ""
	check := func() bool {
		g := newGraph(part, false, &v.problems)
		for _, pkg := range g.Packages {
			v.validatePackage(pkg)
		}
		if name != "" {
			packages++
		}
		part = &Catalog{}
		return len(v.problems.kept) == 0
	}
	x, err := NewIndex(ctx, fsys, o)
	if err != nil {
		return nil, false
	}
	large := false
	for i := range x.docs {
		if !hasPlace(Rank(x.docs[i].Schema), x.docs[i].Package) {
			return nil, false // the blob is not yielded and is a problem
		}
		large = large || x.docs[i].End-x.docs[i].Start > largeDocument
	}
	if large {
		runtime.GC() // frees the memory that indexing the document took
	}
	for b, err := range x.Blobs(ctx, nil) {
		if err != nil {
			return nil, false
		}
		if pkg := b.BlobPackage(); pkg != name {
			if !check() {
				return nil, false
			}
			name = pkg
		}
		part.Add(b)
	}
	if !check() || warned.full {
		return nil, false
	}
	return &Validated{Packages: packages, Notes: v.notes, MoreNotes: v.moreNotes}, true
}

// maxRefined is the maximum number of problems whose lines are determined.
const maxRefined = 200

// refinePositions replaces the line of a blob by that of the problem's value, if it can be found.
func refinePositions(fsys fs.FS, problems []Problem, l Limits) {
	var places []Place
	for i := range problems {
		p := &problems[i]
		if len(p.path) > 0 && p.Position.Line > 0 && len(places) < maxRefined {
			places = append(places, Place{p.Position.File, &p.Position.Line, &p.Position.Column, p.path})
		}
	}
	l.FindLines(fsys, places)
}

// FindLines gives each problem the line and the column of its value, where the files of the catalog can be read: those
// of a directory. Each file is read once more. Problems that were located before keep their place.
func (e *ValidationError) FindLines(l Limits) {
	byDir := map[string][]int{}
	for i := range e.Problems {
		if p := &e.Problems[i].Position; p.Dir != "" && p.Column == 0 {
			byDir[p.Dir] = append(byDir[p.Dir], i)
		}
	}
	for dir, indices := range byDir {
		fsys, err := OpenDir(dir)
		if err != nil {
			continue // the blobs' lines remain
		}
		var places []Place
		for _, i := range indices {
			if p := &e.Problems[i]; len(p.path) > 0 && p.Position.Line > 0 && len(places) < maxRefined {
				places = append(places, Place{p.Position.File, &p.Position.Line, &p.Position.Column, p.path})
			}
		}
		l.FindLines(fsys, places)
	}
}

// Place is a value in a blob.
type Place struct {
	File string
	// Line is the first line of the blob, and is set to that of the value, as is Column.
	Line, Column *int
	// Path are the names of fields and the indices of lists that lead to the value.
	Path []any
}

// FindLines sets line and column of each place to that of the value, as far as it can be found. Each file is read
// once more.
//
// The lines of places in JSON are looked for in as many bytes as take one or two seconds.
func (l Limits) FindLines(fsys fs.FS, places []Place) {
	left := maxLocated
	byFile := map[string]map[int][]Place{}
	for _, p := range places {
		if byFile[p.File] == nil {
			byFile[p.File] = map[int][]Place{}
		}
		byFile[p.File][*p.Line] = append(byFile[p.File][*p.Line], p)
	}
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		byLine := byFile[name]
		f, err := fsys.Open(name)
		if err != nil {
			continue // the blob's line remains
		}
		findLines(f, byLine, l, &left)
		_ = f.Close() // opened for reading only
	}
}

// maxLocated limits the bytes in which lines are looked for: each look-up in JSON reads its document again.
const maxLocated = 256 << 20

func findLines(r io.Reader, byLine map[int][]Place, l Limits, left *int) {
	split := canon.NewSplitter(r, l.canon())
	for len(byLine) > 0 {
		doc, err := split.Next()
		if err != nil {
			return
		}
		// Several documents may start on one line: the first one with the path is used.
		if len(byLine[doc.Line]) == 0 {
			continue
		}
		lines := canon.NewLocator(doc.Data, doc.JSON)
		for _, p := range byLine[doc.Line] {
			if doc.JSON {
				if *left -= len(doc.Data); *left < 0 {
					break
				}
			}
			if line, column, ok := lines.Place(p.Path...); ok {
				*p.Line, *p.Column = doc.Line+line-1, column
			}
		}
		delete(byLine, doc.Line)
	}
}
