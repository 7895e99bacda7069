package declcfg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Limits bound what is read. A zero field means its default.
type Limits struct {
	// MaxFileSize is the maximum size of one catalog file in bytes; 1 GiB by default. Files are read document by
	// document, so it does not bound memory.
	MaxFileSize int64
	// MaxDocument is the maximum size of one document in bytes; 32 MiB by default. That is eight times what a client of
	// the catalog API receives by default.
	MaxDocument int
	// MaxDepth is the maximum nesting of a document; 100 by default.
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
	c.MaxDocument = cmp.Or(c.MaxDocument, defaultMaxDocument)
	return c
}

// LoadOptions configure loading. The zero value loads everything on all processors.
type LoadOptions struct {
	// Jobs is how many files are parsed concurrently; 0 means one per processor.
	Jobs   int
	Limits Limits
	// Dir, unless empty, is the path of the file system's directory: positions in messages are prefixed with it.
	Dir string
	// Files, unless nil, are the files to read instead of the whole tree, in lexical order. See [Files].
	Files []string
	// Skeleton drops the values of olm.bundle.object and olm.csv.metadata properties after checking them. They are most
	// of a catalog's bytes and not needed for the upgrade graph or its validation.
	Skeleton bool
	// Unknown keeps unknown fields and the content of blobs of unknown schemas in a skeleton load. Everything except
	// the manifests of bundles can then be written again.
	Unknown bool
	// Whole, unless nil, selects packages that a skeleton load keeps completely. It is called concurrently.
	Whole func(pkg string) bool
	// Lazy does not check manifests until [Bundle.Objects] or another method decodes them: for callers that decode all
	// of them anyway. A skeleton load checks them anyway.
	Lazy bool
	// Checked does not check manifests at all: for what was written from blobs that a reader has checked.
	Checked bool
	// Warn is called for accepted but probably unintended input, such as a repeated key or an unknown field. It may be
	// called concurrently.
	Warn func(Position, string)
	// UnknownField, unless nil, is called instead of Warn for fields that the schema of a blob does not define. path
	// are the names (string) and indices (int) that lead from the blob at a position to the field.
	UnknownField func(at Position, path []any, message string)
	// Omitted, unless nil, is called for every problem that a *[ValidationError] does not contain; calls do not
	// overlap.
	Omitted func(Problem)
	// Schemaless accepts what opm refuses and catalogd stores: files of comments only, which are nothing, and blobs
	// without a schema. Each of these is a [*Meta] and has no place in the writing order.
	Schemaless bool
	// Read, unless nil, is called with the number of bytes that were read of a file. Calls are concurrent. An index
	// reads every file twice, and reports the first time.
	Read func(n int)
	// Images makes [NewIndex] record the images of bundles.
	Images bool
	// Document, unless nil, is called with the position of each blob's document, in the order of the file. Calls for
	// different files are concurrent. [Walk] does not call it.
	Document func(Blob, Document)

	expansion *canon.Expansion // shared by all files of a tree; nil: each reader has its own
}

// Load reads the catalog in fsys: every file of the tree that is not ignored, each a sequence of JSON or YAML
// documents. The blobs of each slice are in the lexical order of the files, and then in the order of their documents.
// All files are read before an error is returned; it is a *[ValidationError] with every file's first problem, unless
// reading failed or ctx was cancelled.
func Load(ctx context.Context, fsys fs.FS, o LoadOptions) (*Catalog, error) {
	c := &Catalog{}
	// Everything stays in memory, so that a limit of waiting documents is useless.
	err := walk(ctx, fsys, o, math.MaxInt, func(d *docReader) (Blob, error) { return d.blob() }, func(b Blob) error {
		c.Add(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Walk calls fn for every blob of the catalog in fsys, in the lexical order of the files and then in the order of their
// documents. Files are parsed concurrently, ahead of fn, whose calls do not overlap; an error of fn ends the walk.
// Bundles' manifests are not checked.
func Walk(ctx context.Context, fsys fs.FS, o LoadOptions, fn func(*Meta) error) error {
	return walk(ctx, fsys, o, aheadBytes, func(d *docReader) (*Meta, error) { return d.meta() }, fn)
}

// WalkBlobs works like [Walk] with blobs as [Load] reads them: for callers that need each of them only briefly. A blob
// belongs to fn. Blobs before a problem in their file may be handed over.
func WalkBlobs(ctx context.Context, fsys fs.FS, o LoadOptions, fn func(Blob) error) error {
	return walk(ctx, fsys, o, aheadBytes, func(d *docReader) (Blob, error) { return d.blob() }, fn)
}

// Read loads a single stream of documents. name is its name in positions. The limit of a file's size applies to the
// stream.
func Read(ctx context.Context, r io.Reader, name string, o LoadOptions) (*Catalog, error) {
	return NewReader(o).Read(ctx, r, name)
}

// Reader reads the blobs of streams, one after the other, and reuses its buffers. It is not safe for concurrent use.
type Reader struct{ d *docReader }

// NewReader returns a Reader, which must be reset before use.
func NewReader(o LoadOptions) *Reader { return &Reader{newDocReader(o)} }

// Read reads another stream completely, like the function [Read].
func (d *Reader) Read(ctx context.Context, r io.Reader, name string) (*Catalog, error) {
	d.Reset(r, name)
	c := &Catalog{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := d.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		c.Add(b)
	}
}

// Reset starts another stream. name is its name in positions. The limit of a file's size applies to the stream.
func (r *Reader) Reset(in io.Reader, name string) {
	r.d.reset(&fileReader{r: in, limit: r.d.options.Limits.fileSize()}, name)
}

// Next returns the next blob, and [io.EOF] after the last one. The error is a *[ValidationError], unless reading
// failed.
func (r *Reader) Next() (Blob, error) {
	b, err := r.d.blob()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.d.problem(err)
	}
	return b, err
}

// Manifests calls fn for each object that [Bundle.Objects] returns, valid during the call; csv is true for the one that
// [Bundle.CSV] returns. It is for a bundle that Next has just returned and that [LoadOptions].Lazy has left unchecked:
// the error is the one that Next returns without Lazy.
func (r *Reader) Manifests(b *Bundle, fn func(object []byte, csv bool)) (err error) {
	found := false
	r.d.object, err = b.checkObjects(r.d.object, func(object []byte) {
		csv := !found && jsonscan.Kind(object) == csvKind
		found = found || csv
		fn(object, csv)
	})
	if err != nil {
		return r.d.problem(&objectError{&Meta{Package: b.Package, Name: b.Name}, err})
	}
	return nil
}

// NextMeta is like [Reader.Next] without decoding the blob: it returns the canonical text, which belongs to the caller.
// [Meta.Parse] decodes it.
func (r *Reader) NextMeta() (*Meta, error) {
	m, err := r.d.meta()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.d.problem(err)
	}
	return m, err
}

// walk reads all files concurrently with read, and hands over the results in order. most is approximately how many
// bytes of documents may wait for that.
func walk[T any](ctx context.Context, fsys fs.FS, o LoadOptions, most int, read func(*docReader) (T, error),
	emit func(T) error) error {
	if fsys == nil {
		return errors.New("no declarative config filesystem provided")
	}
	files := o.Files
	if files == nil {
		var err error
		if files, err = catalogFiles(fsys); err != nil {
			return err
		}
	}
	return inOrder(ctx, o, len(files), most, func(ctx context.Context, d *docReader, i int, hand func(T) error) error {
		return readFile(ctx, fsys, files[i], d, read, hand)
	}, emit)
}

// readFile hands over the result of read for each document of a file.
func readFile[T any](ctx context.Context, fsys fs.FS, name string, d *docReader, read func(*docReader) (T, error),
	hand func(T) error) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	maxSize := d.options.Limits.fileSize()
	if info, err := f.Stat(); err == nil && info.Size() > maxSize {
		return &ValidationError{Problems: []Problem{{Position: Position{File: name, Dir: d.options.Dir},
			Rule:    RuleLimit,
			Message: fmt.Sprintf("file has %d bytes (limit %d)", info.Size(), maxSize)}}}
	}
	d.reset(&fileReader{r: f, limit: maxSize, count: d.options.Read}, name)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := read(d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return d.problem(err)
		}
		if err := hand(b); err != nil {
			return err
		}
	}
}
