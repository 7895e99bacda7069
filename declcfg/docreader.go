package declcfg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
)

// fileReader fails if a file has more bytes than its limit, even if it grows while it is read.
type fileReader struct {
	r     io.Reader
	limit int64
	read  int64
	count func(n int) // see LoadOptions.Read; may be nil
}

func (f *fileReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if f.count != nil && n > 0 {
		f.count(n)
	}
	if f.read += int64(n); f.read > f.limit {
		return 0, &canon.LimitError{What: "file size", Limit: f.limit}
	}
	return n, err
}

// docReader reads the documents of one file after another. It reuses its buffers: allocating them for each file was a
// third of the allocations of loading a catalog.
type docReader struct {
	in       *bufio.Reader
	split    *canon.Splitter
	conv     canon.Converter
	name     string
	line     int       // of the last document
	doc      canon.Doc // the last document; its data are valid until the next one is read
	count    int       // of documents
	left     int       // bytes that may be read to find the places of values
	broken   bool      // the file cannot be split into documents any further
	comments bool
	options  LoadOptions
	scratch  []byte
	object   []byte // scratch of checkObjects
	spans    spanReader
}

func newDocReader(o LoadOptions) *docReader {
	if o.expansion == nil {
		o.expansion = &canon.Expansion{}
	}
	in := bufio.NewReader(nil)
	return &docReader{in: in, split: canon.NewSplitter(in, o.Limits.canon()),
		conv: canon.Converter{Limits: o.Limits.canon(), Expansion: o.expansion}, options: o, left: maxLocated}
}

// close releases the reader's resources.
func (d *docReader) close() { d.spans.close() }

// reset starts another file.
func (d *docReader) reset(r io.Reader, name string) {
	d.in.Reset(r)
	d.split.Reset(d.in, d.options.Limits.canon())
	d.name, d.line, d.count, d.comments, d.broken = name, 0, 0, false, false
}

func (d *docReader) pos(line int) Position {
	return Position{File: d.name, Line: line, Dir: d.options.Dir}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// next reads a document into the scratch buffer as canonical JSON.
func (d *docReader) next() ([]byte, error) {
	doc, err := d.document()
	if err != nil {
		return nil, err
	}
	return d.convert(doc)
}

// document reads the text of a document.
func (d *docReader) document() (_ canon.Doc, err error) {
	defer func() { d.broken = err != nil }()
	if d.count == 0 {
		head, err := d.in.Peek(d.in.Size())
		if err != nil && err != io.EOF { // an error that only wraps io.EOF is not the end
			return canon.Doc{}, &canon.ReadError{Err: err}
		}
		if d.line = 1; bytes.HasPrefix(head, byteOrderMark) {
			return canon.Doc{}, errors.New("text starts with a byte order mark: save it as UTF-8 without one")
		}
		d.comments = bytes.HasPrefix(bytes.TrimSpace(head), []byte("#"))
	}
	d.count++
	doc, err := d.split.Next()
	if errors.Is(err, io.EOF) && d.count == 1 && d.comments && !d.options.Schemaless {
		// A file with only comments is not empty, but it is not a catalog either. To catalogd it is nothing.
		return canon.Doc{}, errNoObject
	}
	d.line = doc.Line
	d.doc = canon.Doc{Start: doc.Start, End: doc.End, JSON: doc.JSON, Data: doc.Data}
	return doc, err
}

// convert converts a document to canonical JSON in the scratch buffer.
func (d *docReader) convert(doc canon.Doc) (_ []byte, err error) {
	if d.options.Warn != nil {
		d.conv.Warn = func(line int, message string) {
			d.options.Warn(d.pos(d.line+line-1), message)
		}
	}
	d.scratch, err = d.conv.Append(d.scratch[:0], doc)
	return d.scratch, err
}

func (d *docReader) meta() (*Meta, error) {
	doc, err := d.next()
	if err != nil {
		return nil, err
	}
	m, err := newMeta(bytes.Clone(doc), d.options.Schemaless)
	if err != nil {
		return nil, err
	}
	m.Pos = d.pos(d.line)
	return m, nil
}

func (d *docReader) blob() (Blob, error) {
	doc, err := d.next()
	if err != nil {
		return nil, err
	}
	return d.parse(doc)
}

// parse decodes canonical JSON in the scratch buffer to a blob.
func (d *docReader) parse(doc []byte) (Blob, error) {
	skeleton := d.options.Skeleton
	if !skeleton {
		doc = bytes.Clone(doc)
	}
	m, err := newMeta(doc, d.options.Schemaless)
	if err != nil {
		return nil, err
	}
	if skeleton && d.options.Whole != nil && d.options.Whole(packageOf(m)) {
		skeleton = false
		m.Blob = bytes.Clone(m.Blob)
	}
	m.Pos = d.pos(d.line)
	blob, odd, err := parse(m)
	if err != nil {
		return nil, err
	}
	if odd && (d.options.Warn != nil || d.options.UnknownField != nil) {
		d.reportUnknown(m)
	}
	if b, ok := blob.(*Bundle); ok {
		if d.options.Lazy && !skeleton || d.options.Checked {
			b.HasObjects = slices.ContainsFunc(b.Properties,
				func(p Property) bool { return p.Type == PropertyBundleObject })
		} else if d.object, err = b.checkObjects(d.object, nil); err != nil {
			return nil, &objectError{m, err}
		}
		if skeleton {
			b.reduce()
		}
	}
	if skeleton {
		detach(blob, d.options.Unknown)
	}
	if d.options.Document != nil {
		d.options.Document(blob, Document{Position: m.Pos, Start: d.doc.Start, End: d.doc.End, JSON: d.doc.JSON})
	}
	return blob, nil
}

// packageOf returns the package that a blob belongs to.
func packageOf(m *Meta) string {
	pkg, _ := identify(m.Schema, m.Package, m.Name)
	return pkg
}

// detach copies the parts of a blob that share memory with the reader's buffer. With unknown set, undefined fields are
// copied too, otherwise dropped.
func detach(blob Blob, unknown bool) {
	switch b := blob.(type) {
	case typedBlob:
		schemaNamed(b.BlobSchema()).json.detach(reflect.ValueOf(b).Elem())
		_, fields := b.origin()
		if !unknown {
			*fields = nil
		}
		for i := range *fields {
			(*fields)[i].Value = bytes.Clone((*fields)[i].Value)
		}
	case *Meta:
		if !unknown {
			b.Blob = nil
		}
		b.Blob = bytes.Clone(b.Blob)
	}
}

// objectError is an error in the manifests of a bundle.
type objectError struct {
	meta *Meta
	err  error
}

func (e *objectError) Error() string { return e.err.Error() }
func (e *objectError) Unwrap() error { return e.err }

// problem converts an error of this file to a *ValidationError. Read errors, as opposed to errors in the content, are
// unchanged.
func (d *docReader) problem(err error) error {
	var pathErr *fs.PathError
	var read *canon.ReadError
	var limit *canon.LimitError
	if errors.As(err, &pathErr) || errors.Is(err, context.Canceled) || errors.Is(err, ErrIrregular) || errors.As(err,
		&read) && !errors.As(err, &limit) {
		return fmt.Errorf("%s: %w", d.pos(0), err)
	}
	var types *typeError
	if errors.As(err, &types) {
		return &ValidationError{Problems: types.problems(d.pos(d.line), d.doc, &d.left)}
	}
	p := Problem{Position: d.pos(d.line), Rule: RuleSyntax, Message: fault.Clip(err.Error(), maxMessage)}
	// The converter counts lines from the start of the document.
	var syntax *canon.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Line > 0:
		p.Position.Line, p.Position.Column = p.Position.Line+syntax.Line-1, syntax.Column
		p.Message, p.opm = fault.Clip(syntax.Format+": "+syntax.Msg, maxMessage), p.Message
	case errors.As(err, &limit):
		p.Rule = RuleLimit
		p.Position.Line += max(limit.Line, 1) - 1
	}
	var object *objectError
	if errors.As(err, &object) {
		p.Rule, p.Package, p.Bundle = RuleObjects, object.meta.Package, object.meta.Name
	}
	return &ValidationError{Problems: []Problem{p}}
}
