package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/layers"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// content is the part of one package below configs. The empty name stands for the blobs of no package.
type content struct {
	pkg     string
	entries []layers.Entry

	// For compositions: the reference, the stacked layer, and the layer to compare with the rebuilt one.
	of             *composed
	stacked, proof *Layer
}

// size returns the length of the content in bytes.
func (c content) size() int64 {
	if c.stacked != nil {
		return cmp.Or(c.stacked.Content, c.stacked.Size) / int64(max(1, len(c.stacked.Packages)))
	}
	return layers.Layer{Entries: c.entries}.Size()
}

// planner divides a catalog into packages.
type planner struct {
	fsys    fs.FS
	s       *blobSpool
	at      *places
	changed map[string]bool // packages that are not taken from files
	private bool            // files are copied to the spool, because fsys is closed before they are needed
	entries map[string][]layers.Entry
}

// files adds files of a catalog directory. A file of one package is used unchanged; one of several is split.
func (p *planner) files(ctx context.Context, files []File) error {
	for _, f := range inOrderOfPlacing(files) {
		if !slices.ContainsFunc(f.Packages, func(pkg string) bool { return !p.changed[pkg] }) {
			continue
		}
		if len(f.Packages) == 1 {
			pkg := f.Packages[0]
			e, err := layers.File(p.at.take(pkg, f.Path), p.fsys, f.Path)
			if err == nil && p.private {
				e, err = p.s.copyOf(ctx, e)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
			e.Digest = f.Digest
			p.entries[pkg] = append(p.entries[pkg], e)
			continue
		}
		spans, err := split(ctx, p.fsys, f.Path, p.s, p.changed)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		kept := 0
		for _, pkg := range f.Packages {
			if p.changed[pkg] {
				continue
			}
			kept++
			p.entries[pkg] = append(p.entries[pkg], p.s.entry(p.at.take(pkg, f.Path), spans[pkg]))
		}
		if len(spans) != kept {
			return fmt.Errorf("%s: %w", f.Path, layers.ErrChanged)
		}
	}
	return nil
}

// inOrderOfPlacing sorts files that keep their names first, so that moved files cannot take these names.
func inOrderOfPlacing(files []File) []File {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	keeps := func(f File) int {
		if len(f.Packages) != 1 {
			return 1
		}
		if _, ok := nativeName(f.Packages[0], f.Path); ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b File) int { return keeps(a) - keeps(b) })
	return sorted
}

// split writes the blobs of a file to the spool, each in the format of the file, and returns the spans of each package.
// Blobs of some packages are skipped. It holds one document at a time.
func split(ctx context.Context, fsys fs.FS, name string, s *blobSpool,
	without map[string]bool) (_ map[string][]spool.Span, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	spans := map[string][]spool.Span{}
	docs, reader := canon.NewSplitter(f, canon.Limits{}), declcfg.NewReader(declcfg.LoadOptions{})
	for {
		doc, err := docs.Next()
		if err == io.EOF {
			return spans, nil
		}
		if err != nil {
			return nil, err
		}
		format := declcfg.FormatYAML
		if doc.JSON {
			format = declcfg.FormatJSON
		}
		c, err := reader.Read(ctx, bytes.NewReader(doc.Data), name)
		if err != nil {
			return nil, err
		}
		for b, err := range c.Blobs() {
			if err != nil {
				return nil, err
			}
			pkg := packageOf(b)
			if without[pkg] {
				continue
			}
			if spans[pkg], err = s.add(spans[pkg], b, format); err != nil {
				return nil, err
			}
		}
	}
}

// blobs writes a stream of blobs to the spool and adds it, one file per package.
func (p *planner) blobs(ctx context.Context, blobs iter.Seq2[declcfg.Blob, error],
	format func(pkg string) declcfg.Format) error {
	spans := map[string][]spool.Span{}
	for b, err := range blobs {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		pkg := packageOf(b)
		if p.fsys != nil && !p.changed[pkg] {
			return fmt.Errorf("a blob of package %q, which is not one of the changed packages", pkg)
		}
		if spans[pkg], err = p.s.add(spans[pkg], b, format(pkg)); err != nil {
			return err
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(spans)) {
		e := p.s.entry(p.at.take(pkg, "catalog."+format(pkg).Extension()), spans[pkg])
		p.entries[pkg] = append(p.entries[pkg], e)
	}
	return nil
}

// sortedContents checks the names of the packages and sorts by them, and the files of each by theirs.
func sortedContents(entries map[string][]layers.Entry) ([]content, error) {
	sorted, err := cataloglayer.Sorted(entries)
	all := make([]content, len(sorted))
	for i, p := range sorted {
		all[i] = content{pkg: p.Name, entries: p.Files}
	}
	return all, err
}

// filesOf are the files of packages.
func filesOf(contents []content) []opmcache.Package {
	all := make([]opmcache.Package, len(contents))
	for i, c := range contents {
		all[i] = opmcache.Package{Name: c.pkg, Files: c.entries}
	}
	return all
}
