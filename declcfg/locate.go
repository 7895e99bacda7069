package declcfg

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Validated is what there is to know about a valid catalog.
type Validated struct {
	// Packages is the number of packages that any blob names.
	Packages int
	// Notes are what a valid catalog may have and what is a mistake as often as not: a replaced bundle that the
	// channel has no entry for. There are 100 at most; MoreNotes is the number of the others.
	Notes     []Problem
	MoreNotes int
}

// ValidateFS reads the catalog in fsys and checks it. Its error is that of [Load] or of [Catalog.Validate], the problems with
// the line of the very entry or property that they are about, not only of its blob. A valid catalog is read package by
// package; one that is not valid is loaded as a whole, without manifests, to find all its problems.
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
	c, err := Load(ctx, fsys, o)
	if err != nil {
		return nil, err
	}
	v := validate(c, false, o.Omitted)
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

// maxHeldWarnings is how many warnings are held back until a catalog is known to be valid. One with more is loaded as a whole.
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

// largeDocument is the size in bytes of a document that takes so much memory that it must not take it twice.
const largeDocument = 8 << 20

// validateByPackage validates one package after the other. It gives up at the first problem.
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
			v.pkg(pkg)
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
		if !hasPlace(x.docs[i].Schema, x.docs[i].Package) {
			return nil, false // it is not yielded, and is a problem
		}
		large = large || x.docs[i].End-x.docs[i].Start > largeDocument
	}
	if large {
		runtime.GC() // the memory that finding the document took is there to read it
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

// maxRefined bounds the problems whose lines are looked up: each costs the reading of a file.
const maxRefined = 200

// refinePositions replaces the line of a blob by that of what a problem in it is about, where that can be found. The
// files are read again, once each.
func refinePositions(fsys fs.FS, problems []Problem, l Limits) {
	byFile := map[string]map[int][]*Problem{}
	count := 0
	for i := range problems {
		p := &problems[i]
		if len(p.path) == 0 || p.Position.Line == 0 || count == maxRefined {
			continue
		}
		count++
		if byFile[p.Position.File] == nil {
			byFile[p.Position.File] = map[int][]*Problem{}
		}
		byFile[p.Position.File][p.Position.Line] = append(byFile[p.Position.File][p.Position.Line], p)
	}
	for name, byLine := range byFile {
		f, err := fsys.Open(name)
		if err != nil {
			continue // the line of the blob has to do
		}
		refineFile(f, byLine, l)
		_ = f.Close() // it was only read
	}
}

func refineFile(r io.Reader, byLine map[int][]*Problem, l Limits) {
	split := canon.NewSplitter(r, l.canon())
	for len(byLine) > 0 {
		doc, err := split.Next()
		if err != nil {
			return
		}
		// Several documents may start on one line: the first that has the path is taken.
		for _, p := range byLine[doc.Line] {
			if line, ok := canon.Locate(doc.Data, doc.JSON, p.path...); ok {
				p.Position.Line = doc.Line + line - 1
			}
		}
		delete(byLine, doc.Line)
	}
}
