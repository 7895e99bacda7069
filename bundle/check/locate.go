package check

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
)

// locator finds the lines of values. It reads a file again for each problem, and caches the last file and its last
// document.
type locator struct {
	fsys fs.FS
	file string
	docs []canon.Doc
	last *canon.Locator // of document n; nil if there is none yet
	n    int
	left int // bytes of documents that may still be read: each look-up in JSON reads its document again
}

// maxLocated takes one or two seconds. A look-up in YAML, which goes through the keys of a few maps, counts as perLookUp
// bytes: after some thousands of findings the lines of objects do.
const (
	maxLocated = 16 << 20
	perLookUp  = 4 << 10
)

// find returns line and column of a place in its file: those of the value, else of its nearest parent; 0 if there is
// none.
func (l *locator) find(p place) (line, column int) {
	if p.file == "" || len(p.path) == 0 {
		return p.line, 0
	}
	if l.file != p.file {
		l.file, l.docs, l.last = p.file, documents(l.fsys, p.file), nil
	}
	if p.doc >= len(l.docs) {
		return p.line, 0
	}
	doc := l.docs[p.doc]
	if l.last == nil || l.n != p.doc {
		if l.left <= 0 {
			return p.line, 0
		}
		l.left -= len(doc.Data)
		l.last, l.n = canon.NewLocator(doc.Data, doc.JSON), p.doc
	}
	for n := len(p.path); n > 0 && l.left > 0; n-- {
		if doc.JSON {
			l.left -= len(doc.Data)
		} else {
			l.left -= perLookUp
		}
		if line, column, ok := l.last.Place(p.path[:n]...); ok {
			return doc.Line + line - 1, column
		}
	}
	return p.line, 0
}

// documents returns the documents of a file as far as it can be split.
func documents(fsys fs.FS, name string) (docs []canon.Doc) {
	data, err := bundlefs.ReadFile(fsys, name)
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

// fieldPath parses a field in Kubernetes' notation: spec.versions[0].name, metadata.annotations[a.b/c].
func fieldPath(field string) (path []any) {
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
