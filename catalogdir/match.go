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
)

// wanted is a blob that the directory is to have.
type wanted struct {
	blob declcfg.Blob
	done bool // it has a document
}

// restored returns the blob with the values that a skeleton load has dropped of it, if it is a bundle that was there.
func (w *wanted) restored(there declcfg.Blob) (declcfg.Blob, error) {
	b, ok := w.blob.(*declcfg.Bundle)
	full, isBundle := there.(*declcfg.Bundle)
	if !ok || !isBundle {
		return w.blob, nil
	}
	return b.Restored(full)
}

// wish collects the blobs that the packages are to have, in writing order. Blobs of other packages are not looked at.
func wish(packages map[string]bool, now *declcfg.Catalog) ([]*wanted, error) {
	var all []*wanted
	var errs []error
	for b := range now.Blobs() {
		if !packages[b.BlobPackage()] {
			continue
		}
		if m, ok := b.(*declcfg.Meta); ok && m.Blob == nil {
			errs = append(errs, withoutContent(b))
		}
		all = append(all, &wanted{blob: b})
	}
	return all, errors.Join(errs...)
}

func withoutContent(b declcfg.Blob) error {
	return fmt.Errorf("package %q: %s %q was loaded without its content and cannot be written", b.BlobPackage(), b.BlobSchema(), b.BlobName())
}

// match finds the documents of the packages that stay, change and go, and notes it in the edits. The blobs that have no
// document yet are returned.
func (d *Dir) match(ctx context.Context, packages map[string]bool, now *declcfg.Catalog, edits *edits) ([]*wanted, error) {
	all, err := wish(packages, now)
	if err != nil {
		return nil, err
	}
	byKey := map[key][]*wanted{}
	for _, w := range all {
		k := keyOf(w.blob)
		byKey[k] = append(byKey[k], w)
	}
	other := map[key][]*document{} // documents that are not what is wanted
	for _, f := range d.index.files {
		if err := d.matchFile(ctx, f, packages, byKey, other); err != nil {
			return nil, err
		}
	}
	// What is wanted and not there takes the place of what is there and not wanted, if they have the same name.
	for _, f := range d.index.files {
		for _, doc := range f.docs {
			rest := other[doc.key()]
			if !slices.Contains(rest, doc) {
				continue
			}
			e := edits.of(f)
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
		if b, ok := w.blob.(*declcfg.Bundle); ok && b.Reduced() {
			errs = append(errs, withoutContent(b))
		}
	}
	return all, errors.Join(errs...)
}

// matchFile compares the documents of one file with what is wanted.
func (d *Dir) matchFile(ctx context.Context, f *file, packages map[string]bool, byKey map[key][]*wanted, other map[key][]*document) error {
	var r *documentReader
	for _, doc := range f.docs {
		if !packages[doc.pkg] || doc.pkg == "" && known(doc.schema) {
			continue // the latter has no place in any catalog
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if r == nil {
			var err error
			if r, err = d.openDocuments(f); err != nil {
				return err
			}
			defer r.Close()
		}
		blob, err := r.read(ctx, doc)
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
			// A bundle whose values were dropped has them again when it is written.
			want, err := w.restored(blob)
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

func known(schema string) bool {
	switch schema {
	case declcfg.SchemaPackage, declcfg.SchemaChannel, declcfg.SchemaBundle, declcfg.SchemaDeprecations:
		return true
	}
	return false
}

// sameBlob reports whether two blobs say the same: the order of keys does not count.
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
	limits declcfg.Limits
}

// openDocuments opens a file, which must be the one that was read.
func (d *Dir) openDocuments(f *file) (*documentReader, error) {
	if err := d.unchanged(f); err != nil {
		return nil, err
	}
	open, err := d.root.Open(f.name)
	if err != nil {
		return nil, err
	}
	return &documentReader{open, d.options.Limits}, nil
}

// unchanged returns an error if a file is not any more what it was when it was read.
func (d *Dir) unchanged(f *file) error {
	now, err := d.root.Lstat(f.name)
	if err != nil {
		return err
	}
	if !sameState(f.info, now) {
		return fmt.Errorf("%s: %w", f.name, ErrChanged)
	}
	return nil
}

// text returns the bytes from start to end.
func (r *documentReader) text(start, end int64) ([]byte, error) {
	text := make([]byte, end-start)
	if _, err := r.ReadAt(text, start); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s: %w", r.Name(), ErrChanged)
		}
		return nil, err
	}
	return text, nil
}

// read reads the blob of a document.
func (r *documentReader) read(ctx context.Context, doc *document) (declcfg.Blob, error) {
	text, err := r.text(doc.start, doc.end)
	if err != nil {
		return nil, err
	}
	blob, err := parse(ctx, text, doc.json, doc.file.name, r.limits)
	if err != nil {
		return nil, err
	}
	if keyOf(blob) != doc.key() {
		return nil, fmt.Errorf("%s: %w", doc.file.name, ErrChanged)
	}
	return blob, nil
}

// parse reads the blob that a text holds as a document of its own.
func parse(ctx context.Context, text []byte, isJSON bool, name string, l declcfg.Limits) (declcfg.Blob, error) {
	var in io.Reader = bytes.NewReader(text)
	if !isJSON {
		in = io.MultiReader(strings.NewReader("---\n"), in) // so that it is not taken for JSON
		if l.MaxDocument > 0 {
			l.MaxDocument += len("---\n")
		}
	}
	l.MaxFileSize = 0 // it is about the whole file
	c, err := declcfg.Read(ctx, in, name, declcfg.LoadOptions{Limits: l, Lazy: true})
	if err != nil {
		return nil, err
	}
	blobs := single(c)
	if len(blobs) != 1 {
		return nil, fmt.Errorf("%s: a document holds %d blobs", name, len(blobs))
	}
	return blobs[0], nil
}

// single returns all blobs of a catalog, those that have no place in the writing order too.
func single(c *declcfg.Catalog) (blobs []declcfg.Blob) {
	for i := range c.Packages {
		blobs = append(blobs, &c.Packages[i])
	}
	for i := range c.Channels {
		blobs = append(blobs, &c.Channels[i])
	}
	for i := range c.Bundles {
		blobs = append(blobs, &c.Bundles[i])
	}
	for i := range c.Deprecations {
		blobs = append(blobs, &c.Deprecations[i])
	}
	for i := range c.Others {
		blobs = append(blobs, &c.Others[i])
	}
	return blobs
}
