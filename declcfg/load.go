package declcfg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"

	"github.com/operator-bindery/bindery/internal/canon"
)

// Limits bound what is read. A zero field stands for its default.
type Limits struct {
	// MaxFileSize bounds one catalog file, in bytes; 1 GiB by default. Files are read document by document, so it does
	// not bound memory.
	MaxFileSize int64
	// MaxDocument bounds one document, in bytes; 32 MiB by default. That is eight times what a client of the catalog
	// API receives by default.
	MaxDocument int
	// MaxDepth bounds the nesting of a document; 100 by default.
	MaxDepth int
}

const (
	defaultMaxFileSize = 1 << 30
	defaultMaxDocument = 32 << 20
)

func (l Limits) fileSize() int64 {
	if l.MaxFileSize <= 0 {
		return defaultMaxFileSize
	}
	return l.MaxFileSize
}

func (l Limits) canon() canon.Limits {
	c := canon.Limits{MaxDocument: l.MaxDocument, MaxDepth: l.MaxDepth}
	if c.MaxDocument == 0 {
		c.MaxDocument = defaultMaxDocument
	}
	return c
}

// LoadOptions say how a catalog is loaded. The zero value loads everything, on all processors.
type LoadOptions struct {
	// Jobs is how many files are parsed at once; 0 means one per processor.
	Jobs   int
	Limits Limits
	// Skeleton drops the values of olm.bundle.object and olm.csv.metadata properties after they have been checked.
	// They are most of a catalog, and nothing of the upgrade graph or its validation is in them.
	Skeleton bool
	// Lazy leaves manifests unchecked until [Bundle.Objects] or another method decodes them: for whoever will decode
	// all of them anyway. A skeleton load checks them all the same.
	Lazy bool
	// Warn is told of what is accepted but surely not meant, such as a key that stands twice in a mapping. It may be
	// called from several goroutines.
	Warn func(Position, string)
}

// Load reads the catalog in fsys: every file of the tree that no ignore file ignores, each a sequence of JSON or YAML
// documents. The blobs of each slice are in the lexical order of the files, and then in the order of their documents.
// All files are read before an error is returned; it is a *[ValidationError] with every file's first problem, unless
// reading itself failed or ctx was cancelled.
func Load(ctx context.Context, fsys fs.FS, o LoadOptions) (*Catalog, error) {
	c := &Catalog{}
	err := walk(ctx, fsys, o, func(d *docReader) (Blob, error) { return d.blob() }, func(b Blob) error {
		c.Add(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Walk calls fn for every blob of the catalog in fsys, in the lexical order of the files and then in the order of their
// documents. Files are parsed concurrently, ahead of fn, which is never called concurrently; an error of fn ends the
// walk. Bundles' manifests are not looked at.
func Walk(ctx context.Context, fsys fs.FS, o LoadOptions, fn func(*Meta) error) error {
	return walk(ctx, fsys, o, func(d *docReader) (*Meta, error) { return d.meta() }, fn)
}

// Read loads a single stream of documents. name is what positions call it. The limit of a file's size holds for the
// stream.
func Read(ctx context.Context, r io.Reader, name string, o LoadOptions) (*Catalog, error) {
	d := newDocReader(o)
	d.reset(&fileReader{r: r, limit: o.Limits.fileSize()}, name)
	c := &Catalog{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := d.blob()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, d.problem(err)
		}
		c.Add(b)
	}
}

// ahead is how many files per job may be read or waiting to be handed over. It bounds the memory of a [Walk]; small
// files between large ones need room, or the jobs wait for each other.
const ahead = 16

// walk reads all files with read, in parallel, and hands over what it gives in order.
func walk[T any](ctx context.Context, fsys fs.FS, o LoadOptions, read func(*docReader) (T, error), emit func(T) error) error {
	if fsys == nil {
		return errors.New("no declarative config filesystem provided")
	}
	files, err := catalogFiles(fsys)
	if err != nil {
		return err
	}
	jobs := o.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	type result struct {
		blobs []T
		err   error
	}
	results := make([]chan result, len(files))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	// A file is begun only when less than jobs files are being read, and less than ahead files are read or waiting to
	// be handed over.
	window := make(chan struct{}, ahead*jobs)
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range files {
			select {
			case window <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range jobs {
		go func() {
			d := newDocReader(o)
			for i := range next {
				blobs, err := readFile(ctx, fsys, files[i], d, read)
				results[i] <- result{blobs, err}
			}
		}()
	}

	var invalid ValidationError
	for i := range files {
		var r result
		select {
		case r = <-results[i]:
			<-window
		case <-ctx.Done():
			return ctx.Err()
		}
		var problems *ValidationError
		if errors.As(r.err, &problems) {
			invalid.Problems = append(invalid.Problems, problems.Problems...)
			continue
		}
		if r.err != nil {
			return r.err
		}
		if len(invalid.Problems) > 0 {
			continue // what follows is read for its problems only
		}
		for _, b := range r.blobs {
			if err := emit(b); err != nil {
				return err
			}
		}
	}
	if len(invalid.Problems) > 0 {
		return &invalid
	}
	return nil
}

func readFile[T any](ctx context.Context, fsys fs.FS, name string, d *docReader, read func(*docReader) (T, error)) (_ []T, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	maxSize := d.options.Limits.fileSize()
	if info, err := f.Stat(); err == nil && info.Size() > maxSize {
		return nil, &ValidationError{Problems: []Problem{{Position: Position{File: name}, Rule: RuleLimit,
			Message: fmt.Sprintf("file has %d bytes (limit %d)", info.Size(), maxSize)}}}
	}
	d.reset(&fileReader{r: f, limit: maxSize}, name)
	var blobs []T
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := read(d)
		if errors.Is(err, io.EOF) {
			return blobs, nil
		}
		if err != nil {
			return nil, d.problem(err)
		}
		blobs = append(blobs, b)
	}
}

// fileReader ends in an error where a file has more bytes than its limit, whatever its size was when it was opened.
type fileReader struct {
	r     io.Reader
	limit int64
	read  int64
}

func (f *fileReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if f.read += int64(n); f.read > f.limit {
		return 0, &canon.LimitError{What: "file size", Limit: f.limit}
	}
	return n, err
}

// docReader reads the documents of one file after another. It keeps its buffers: taking new ones for each file was a
// third of what loading a catalog allocated.
type docReader struct {
	in       *bufio.Reader
	split    *canon.Splitter
	conv     canon.Converter
	name     string
	line     int // of the document that was read last
	count    int // of documents
	comments bool
	options  LoadOptions
	scratch  []byte
	object   []byte // scratch of checkObjects
}

func newDocReader(o LoadOptions) *docReader {
	in := bufio.NewReader(nil)
	return &docReader{in: in, split: canon.NewSplitter(in, o.Limits.canon()), conv: canon.Converter{Limits: o.Limits.canon()}, options: o}
}

// reset begins another file.
func (d *docReader) reset(r io.Reader, name string) {
	d.in.Reset(r)
	d.split.Reset(d.in, d.options.Limits.canon())
	d.name, d.line, d.count, d.comments = name, 0, 0, false
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// next reads a document into the scratch buffer as canonical JSON.
func (d *docReader) next() ([]byte, error) {
	if d.count == 0 {
		head, err := d.in.Peek(d.in.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if d.line = 1; bytes.HasPrefix(head, byteOrderMark) {
			return nil, errors.New("text starts with a byte order mark: save it as UTF-8 without one")
		}
		d.comments = bytes.HasPrefix(bytes.TrimSpace(head), []byte("#"))
	}
	d.count++
	doc, err := d.split.Next()
	if errors.Is(err, io.EOF) && d.count == 1 && d.comments {
		// A file of comments only is no empty file: it is some text that is no catalog.
		return nil, errNoObject
	}
	d.line = doc.Line
	if err != nil {
		return nil, err
	}
	if d.options.Warn != nil {
		d.conv.Warn = func(line int, message string) {
			d.options.Warn(Position{File: d.name, Line: d.line + line - 1}, message)
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
	m, err := newMeta(bytes.Clone(doc))
	if err != nil {
		return nil, err
	}
	m.Pos = Position{File: d.name, Line: d.line}
	return m, nil
}

func (d *docReader) blob() (Blob, error) {
	doc, err := d.next()
	if err != nil {
		return nil, err
	}
	if !d.options.Skeleton {
		doc = bytes.Clone(doc)
	}
	m, err := newMeta(doc)
	if err != nil {
		return nil, err
	}
	m.Pos = Position{File: d.name, Line: d.line}
	blob, err := Parse(m)
	if err != nil {
		return nil, err
	}
	if b, ok := blob.(*Bundle); ok {
		if d.options.Lazy && !d.options.Skeleton {
			b.HasObjects = slices.ContainsFunc(b.Properties, func(p Property) bool { return p.Type == PropertyBundleObject })
		} else if d.object, err = b.checkObjects(d.object); err != nil {
			return nil, &objectError{m, err}
		}
		if d.options.Skeleton {
			b.reduce()
		}
	}
	if d.options.Skeleton {
		detach(blob)
	}
	return blob, nil
}

// detach copies what of a blob shares memory with the reader's buffer.
func detach(blob Blob) {
	clone := func(ps []Property) {
		for i := range ps {
			ps[i].Value = bytes.Clone(ps[i].Value)
		}
	}
	switch b := blob.(type) {
	case *Package:
		clone(b.Properties)
		b.Unknown = nil
	case *Channel:
		clone(b.Properties)
		b.Unknown = nil
	case *Bundle:
		clone(b.Properties)
		b.Unknown = nil
	case *Deprecations:
		b.Unknown = nil
	case *Meta:
		b.Blob = nil
	}
}

// objectError is an error in the manifests of a bundle.
type objectError struct {
	meta *Meta
	err  error
}

func (e *objectError) Error() string { return e.err.Error() }
func (e *objectError) Unwrap() error { return e.err }

// problem makes the *ValidationError of an error of this file. Errors of reading, as opposed to content, stay as they
// are.
func (d *docReader) problem(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	p := Problem{Position: Position{File: d.name, Line: d.line}, Rule: RuleSyntax, Message: err.Error()}
	// The converter counts lines from the start of the document.
	var syntax *canon.SyntaxError
	var limit *canon.LimitError
	switch {
	case errors.As(err, &syntax) && syntax.Line > 0:
		p.Position.Line += syntax.Line - 1
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
