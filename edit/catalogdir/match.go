package catalogdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/filetx"
)

// wanted is a blob of the new catalog.
type wanted struct {
	blob declcfg.Blob
	done bool // it has a document
}

// restore returns the blob with the values that a skeleton load dropped, taken from the existing blob.
func (w *wanted) restore(there declcfg.Blob) (declcfg.Blob, error) {
	switch b := w.blob.(type) {
	case *declcfg.Bundle:
		if full, ok := there.(*declcfg.Bundle); ok {
			return b.Restored(full)
		}
	case *declcfg.Meta:
		if b.Blob == nil {
			return there, nil
		}
	}
	return w.blob, nil
}

// isReduced reports whether a skeleton load dropped values of a blob.
func isReduced(b declcfg.Blob) bool {
	switch b := b.(type) {
	case *declcfg.Bundle:
		return b.Reduced()
	case *declcfg.Meta:
		return b.Blob == nil
	}
	return false
}

// wantedBlobs returns the blobs that the packages should have, in writing order.
func wantedBlobs(packages map[string]bool, now *declcfg.Catalog) []*wanted {
	var all []*wanted
	for b := range now.Blobs() {
		if packages[b.BlobPackage()] {
			all = append(all, &wanted{blob: b})
		}
	}
	return all
}

func withoutContent(b declcfg.Blob) error {
	return fmt.Errorf("package %q: %s %q was loaded without its content and cannot be written", b.BlobPackage(),
		b.BlobSchema(), b.BlobName())
}

// match compares the documents of the packages with the wanted blobs and records in the edits which of them change and
// which are dropped. It returns the blobs without a document.
func (d *Dir) match(ctx context.Context, packages map[string]bool, now *declcfg.Catalog,
	edits *edits) ([]*wanted, error) {
	all := wantedBlobs(packages, now)
	byKey := map[key][]*wanted{}
	stays := map[string]bool{}
	for _, w := range all {
		k := keyOf(w.blob)
		byKey[k] = append(byKey[k], w)
		stays[k.pkg] = true
	}
	other := map[key][]*document{} // documents that no wanted blob equals
	for _, f := range d.index.files {
		if err := d.matchFile(ctx, f, packages, stays, edits, byKey, other); err != nil {
			return nil, err
		}
	}
	// A new blob replaces an old document with the same name.
	for _, f := range d.index.files {
		for _, doc := range f.docs {
			rest := other[doc.key()]
			if !slices.Contains(rest, doc) {
				continue
			}
			e := edits.editOf(f)
			if i := slices.IndexFunc(byKey[doc.key()], func(w *wanted) bool { return !w.done }); i >= 0 {
				w := byKey[doc.key()][i]
				w.done = true
				e.change(doc, w.blob)
			} else {
				e.drop(doc)
			}
		}
	}
	all = slices.DeleteFunc(all, func(w *wanted) bool { return w.done })
	var errs []error
	for _, w := range all {
		if isReduced(w.blob) {
			errs = append(errs, withoutContent(w.blob))
		}
	}
	return all, errors.Join(errs...)
}

// matchFile compares the documents of one file with the wanted blobs. Documents of packages that are removed entirely
// are not read.
func (d *Dir) matchFile(ctx context.Context, f *file, packages, stays map[string]bool, edits *edits,
	byKey map[key][]*wanted, other map[key][]*document) error {
	var r *documentReader
	for _, doc := range f.docs {
		if !packages[doc.pkg] || doc.pkg == "" && declcfg.Rank(doc.schema) != declcfg.RankOther {
			continue // the latter has no place in any catalog
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !stays[doc.pkg] {
			edits.editOf(f).drop(doc)
			continue
		}
		if r == nil {
			var err error
			if r, err = d.openDocuments(f); err != nil {
				return err
			}
			defer r.Close()
		}
		blob, err := r.read(doc)
		if err != nil {
			return err
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			if v, err := b.VersionRelease(); err == nil {
				doc.version = &v
			}
		}
		i := -1
		for n, w := range byKey[doc.key()] {
			if w.done {
				continue
			}
			// A bundle from a skeleton load is compared with its dropped values restored.
			want, err := w.restore(blob)
			if err != nil {
				return err
			}
			if sameBlob(blob, want) {
				i = n
				break
			}
		}
		if i < 0 {
			other[doc.key()] = append(other[doc.key()], doc)
			continue
		}
		byKey[doc.key()][i].done = true
	}
	return nil
}

// sameBlob reports whether two blobs are equal apart from key order.
func sameBlob(a, b declcfg.Blob) bool {
	x, y := declcfg.AppendJSON(nil, a, false), declcfg.AppendJSON(nil, b, false)
	if bytes.Equal(x, y) {
		return true
	}
	l := canon.Limits{MaxDocument: max(len(x), len(y)), MaxDepth: 1 << 20}
	x, errX := canon.AppendJSON(nil, x, l, nil)
	y, errY := canon.AppendJSON(nil, y, l, nil)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// documentReader reads single documents of a file.
type documentReader struct {
	*os.File
	parser *parser
	buf    []byte
}

// openDocuments opens a file and checks that it is the one that was read.
func (d *Dir) openDocuments(f *file) (*documentReader, error) {
	if err := d.unchanged(f); err != nil {
		return nil, err
	}
	open, err := d.root.Open(f.name)
	if err != nil {
		return nil, err
	}
	return &documentReader{File: open, parser: newParser()}, nil
}

// unchanged returns an error if a file changed after it was read.
func (d *Dir) unchanged(f *file) error {
	now, err := d.root.Lstat(f.name)
	if err != nil {
		return err
	}
	if !filetx.SameState(f.info, now) {
		return fmt.Errorf("%s: %w", f.name, ErrChanged)
	}
	return nil
}

func (r *documentReader) text(start, end int64) ([]byte, error) {
	text := make([]byte, end-start)
	return text, r.fill(text, start)
}

func (r *documentReader) fill(text []byte, start int64) error {
	_, err := r.ReadAt(text, start)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", r.Name(), ErrChanged)
	}
	return err
}

func (r *documentReader) read(doc *document) (declcfg.Blob, error) {
	r.buf = slices.Grow(r.buf[:0], int(doc.end-doc.start))[:doc.end-doc.start]
	if err := r.fill(r.buf, doc.start); err != nil {
		return nil, err
	}
	blob, err := r.parser.parse(r.buf, doc.json, doc.file.name)
	if err != nil {
		return nil, err
	}
	if keyOf(blob) != doc.key() {
		return nil, fmt.Errorf("%s: %w", doc.file.name, ErrChanged)
	}
	return blob, nil
}

// parser parses single documents.
type parser struct {
	reader *declcfg.Reader
	text   bytes.Reader
}

func newParser() *parser {
	return &parser{reader: declcfg.NewReader(declcfg.LoadOptions{Lazy: true})}
}

const separator = "---\n"

// parse reads the blob in a text. It shares no memory with the text.
func (p *parser) parse(text []byte, isJSON bool, name string) (declcfg.Blob, error) {
	p.text.Reset(text)
	var in io.Reader = &p.text
	if !isJSON {
		in = io.MultiReader(strings.NewReader(separator), in) // the separator keeps it from being read as JSON
	}
	p.reader.Reset(in, name)
	blob, err := p.reader.Next()
	if err == nil {
		if _, err = p.reader.Next(); err == nil {
			err = fmt.Errorf("%s: a document holds several blobs", name)
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return blob, err
}
