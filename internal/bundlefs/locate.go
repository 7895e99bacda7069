package bundlefs

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Place is a value in a document of a file.
type Place struct {
	File     string
	Document int // index of the document in the file
	Line     int // first line of the document, for values that are not found
	Path     []any
}

// Locator finds the lines of values. It reads a file again for each problem, and caches the last file and its last
// document.
//
// It reads at most some 16 MiB of documents, which takes one or two seconds: after that the lines are those of
// documents. It is not safe for concurrent use.
type Locator struct {
	fsys fs.FS
	file string
	docs []canon.Doc
	last *canon.Locator // of document n; nil if there is none yet
	n    int
	left int // bytes of documents that may still be read: each look-up in JSON reads its document again
}

// NewLocator returns a Locator of the files of a bundle.
func NewLocator(fsys fs.FS) *Locator { return &Locator{fsys: fsys, left: maxLocated} }

// maxLocated takes one or two seconds. A look-up in YAML, which goes through the keys of a few maps, counts as perLookUp
// bytes: after some thousands of findings the lines of objects do.
const (
	maxLocated = 16 << 20
	perLookUp  = 4 << 10
)

// Find returns line and column of a place in its file: those of the value, else of its nearest parent; 0 if there is
// none.
func (l *Locator) Find(p Place) (line, column int) {
	if p.File == "" || len(p.Path) == 0 {
		return p.Line, 0
	}
	if l.file != p.File {
		l.file, l.docs, l.last = p.File, documents(l.fsys, p.File), nil
	}
	if p.Document >= len(l.docs) {
		return p.Line, 0
	}
	doc := l.docs[p.Document]
	if l.last == nil || l.n != p.Document {
		if l.left <= 0 {
			return p.Line, 0
		}
		l.left -= len(doc.Data)
		l.last, l.n = canon.NewLocator(doc.Data, doc.JSON), p.Document
	}
	for n := len(p.Path); n > 0 && l.left > 0; n-- {
		if doc.JSON {
			l.left -= len(doc.Data)
		} else {
			l.left -= perLookUp
		}
		if line, column, ok := l.last.Place(p.Path[:n]...); ok {
			return doc.Line + line - 1, column
		}
	}
	return p.Line, 0
}

// documents returns the documents of a file as far as it can be split.
func documents(fsys fs.FS, name string) (docs []canon.Doc) {
	data, err := ReadFile(fsys, name)
	if err != nil {
		return nil
	}
	s := canon.NewSplitter(bytes.NewReader(data), canon.Limits{})
	for {
		d, err := s.Next()
		if err != nil {
			return docs
		}
		d.Data = bytes.Clone(d.Data)
		docs = append(docs, d)
	}
}

// FieldPath parses a field in Kubernetes' notation: spec.versions[0].name, metadata.annotations[a.b/c].
func FieldPath(field string) (path []any) {
	for field != "" {
		end := strings.IndexAny(field, ".[")
		switch {
		case end < 0:
			return append(path, field)
		case end > 0:
			path = append(path, field[:end])
			field = field[end:]
		case field[0] == '.':
			field = field[1:]
		default:
			inner, rest, ok := strings.Cut(field[1:], "]")
			if !ok {
				return path
			}
			if i, err := strconv.Atoi(inner); err == nil {
				path = append(path, i)
			} else {
				path = append(path, inner)
			}
			field = rest
		}
	}
	return path
}
