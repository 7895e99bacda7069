package declcfg

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Index has the positions of a catalog's blobs, whatever the layout of its files, so that they can be read package by
// package. Building it parses only blobs whose package is not obvious from their text, and needs about a hundred bytes
// of memory per blob. An index is safe for concurrent use.
type Index struct {
	fsys    fs.FS
	options LoadOptions
	docs    []IndexedDocument // in the order of the files and their documents

	once      sync.Once
	byPackage map[string][]int // the documents in the order of [Stream]
}

// IndexedDocument is the position of a blob, with its identifying fields.
type IndexedDocument struct {
	Document
	Schema, Package, Name string // Package is as in [Blob.BlobPackage]
	Image                 string // of a bundle, if the index was built with [LoadOptions].Images

	empty bool // comments only
}

// NewIndex makes the index of the catalog in fsys. It heeds the fields Jobs, Limits, Files, Schemaless and Images of o.
// It finds only those problems of files that keep it from finding the blobs, and returns them as [Load] does.
func NewIndex(ctx context.Context, fsys fs.FS, o LoadOptions) (*Index, error) {
	x := &Index{fsys: fsys, options: o}
	quiet := o
	quiet.Warn = nil
	known := map[string]string{}
	intern := func(s string) string {
		if _, ok := known[s]; !ok {
			known[s] = s
		}
		return known[s]
	}
	err := walk(ctx, fsys, quiet, math.MaxInt, (*docReader).locate, func(at IndexedDocument) error {
		if at.empty {
			return nil
		}
		at.Schema, at.Package = intern(at.Schema), intern(at.Package)
		x.docs = append(x.docs, at)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.docs = slices.Clip(x.docs)
	return x, nil
}

// Documents returns the blobs in the order of the files and their documents. They must not be changed.
func (x *Index) Documents() []IndexedDocument { return x.docs }

var metaKeys = []string{"schema", "package", "name", "image"}

// locate scans a document and returns its identifying fields.
func (d *docReader) locate() (IndexedDocument, error) {
	doc, err := d.document()
	if err != nil {
		return IndexedDocument{}, err
	}
	if !doc.JSON && bytes.HasPrefix(doc.Data, []byte("---")) {
		return IndexedDocument{}, ErrIrregular
	}
	at := IndexedDocument{Document: Document{Position: Position{File: d.name, Line: doc.Line, Dir: d.options.Dir},
		Start: doc.Start, End: doc.End, JSON: doc.JSON}}
	var values [4]string
	n := len(values)
	if !d.options.Images {
		n--
	}
	if doc.Strings(metaKeys[:n], values[:n]) && values[0] != "" {
		at.Schema, at.Package, at.Name, at.Image = values[0], values[1], values[2], values[3]
	} else {
		text, err := d.convert(doc)
		if err != nil {
			return IndexedDocument{}, err
		}
		m, err := newMeta(text, d.options.Schemaless)
		if err != nil {
			return IndexedDocument{}, err
		}
		at.Schema, at.Package, at.Name, at.empty = m.Schema, m.Package, m.Name, string(m.Blob) == "null"
		if m.Schema == SchemaBundle && d.options.Images {
			b, err := m.Parse()
			if err != nil {
				return IndexedDocument{}, err
			}
			at.Image = b.(*Bundle).Image
		}
	}
	at.Package, at.Name = identify(at.Schema, at.Package, at.Name)
	return at, nil
}

// spanReader reads documents at their positions and keeps the last file open.
type spanReader struct {
	name string
	file fs.File
	at   readerAt
	text []byte
}

type readerAt interface {
	ReadAt(b []byte, off int64) (int, error)
}

func (s *spanReader) close() {
	if s.file != nil {
		_ = s.file.Close() // opened for reading only
	}
	s.file = nil
}

// open opens a file unless it is open.
func (s *spanReader) open(fsys fs.FS, name string, limit int64) (err error) {
	if s.file != nil && s.name == name {
		return nil
	}
	s.close()
	if s.file, err = fsys.Open(name); err != nil {
		s.file = nil
		return err
	}
	s.name = name
	var ok bool
	if s.at, ok = s.file.(readerAt); ok {
		return nil
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(&fileReader{r: s.file, limit: limit}); err != nil {
		return err
	}
	s.at = bytes.NewReader(all.Bytes())
	return nil
}

// errChanged is returned if a file changed after the index was built.
var errChanged = errors.New("changed while it was being read")

func (d *docReader) readAt(fsys fs.FS, at *IndexedDocument) (Blob, error) {
	d.name, d.line = at.File, at.Line
	s := &d.spans
	if err := s.open(fsys, at.File, d.options.Limits.fileSize()); err != nil {
		return nil, err
	}
	n := int(at.End - at.Start)
	s.text = slices.Grow(s.text[:0], n+1)[:n]
	if got, err := s.at.ReadAt(s.text, at.Start); got < n {
		return nil, &fs.PathError{Op: "read", Path: at.File, Err: errors.Join(errChanged, err)}
	}
	doc := canon.Text(s.text, at.JSON)
	doc.Line = at.Line
	d.doc = canon.Doc{Start: at.Start, End: at.End, JSON: at.JSON, Data: doc.Data}
	text, err := d.convert(doc)
	if err != nil {
		return nil, err
	}
	b, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	if b.BlobSchema() != at.Schema || b.BlobPackage() != at.Package || b.BlobName() != at.Name {
		return nil, &fs.PathError{Op: "read", Path: at.File, Err: errChanged}
	}
	return b, nil
}
