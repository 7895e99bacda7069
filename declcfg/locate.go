package declcfg

import (
	"context"
	"errors"
	"io"
	"io/fs"

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

// ValidateFS loads the catalog in fsys and checks it. Its error is that of [Load] or of [Validate], the problems with
// the line of the very entry or property that they are about, not only of its blob. It holds the catalog's skeleton
// only.
func ValidateFS(ctx context.Context, fsys fs.FS, o LoadOptions) (*Validated, error) {
	o.Skeleton = true
	c, err := Load(ctx, fsys, o)
	var v *validator
	if err == nil {
		v = validate(c, false, o.Omitted)
		err = v.problems.err()
	}
	var invalid *ValidationError
	if errors.As(err, &invalid) {
		refinePositions(fsys, invalid.Problems, o.Limits)
	}
	if err != nil {
		return nil, err
	}
	refinePositions(fsys, v.notes, o.Limits)
	parts := c.ByPackage()
	delete(parts, "")
	return &Validated{Packages: len(parts), Notes: v.notes, MoreNotes: v.moreNotes}, nil
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
