package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/layers"
)

// content is what one package has below configs. The empty name stands for the blobs of no package.
type content struct {
	pkg     string
	entries []layers.Entry
}

// size is the length of the content in bytes.
func (c content) size() int64 { return layers.Layer{Entries: c.entries}.Size() }

// planFiles divides a catalog directory into packages. A file of one package goes in as it is; one of several is split.
func planFiles(ctx context.Context, fsys fs.FS, files []File, s *spool) ([]content, error) {
	entries := map[string][]layers.Entry{}
	at := newPlaces()
	for _, f := range inOrderOfPlacing(files) {
		if len(f.Packages) == 1 {
			pkg := f.Packages[0]
			e, err := layers.File(at.take(pkg, f.Path), fsys, f.Path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			entries[pkg] = append(entries[pkg], e)
			continue
		}
		spans, err := split(ctx, fsys, f.Path, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		for _, pkg := range f.Packages {
			entries[pkg] = append(entries[pkg], s.entry(at.take(pkg, f.Path), spans[pkg]))
		}
		if len(spans) != len(f.Packages) {
			return nil, fmt.Errorf("%s: %w", f.Path, layers.ErrChanged)
		}
	}
	return sortedContents(entries)
}

// inOrderOfPlacing puts the files first that keep their names, so that none of those has to give way to one that moves.
func inOrderOfPlacing(files []File) []File {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	keeps := func(f File) int {
		if len(f.Packages) != 1 {
			return 1
		}
		if _, ok := own(f.Packages[0], f.Path); ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sorted, func(a, b File) int { return keeps(a) - keeps(b) })
	return sorted
}

// split writes the blobs of a file to the spool, each in the format of the file, and tells where those of each package
// are. It holds one document at a time.
func split(ctx context.Context, fsys fs.FS, name string, s *spool) (_ map[string][]span, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	spans := map[string][]span{}
	docs := canon.NewSplitter(f, canon.Limits{})
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
		c, err := declcfg.Read(ctx, bytes.NewReader(doc.Data), name, declcfg.LoadOptions{})
		if err != nil {
			return nil, err
		}
		for b, err := range c.Blobs() {
			if err != nil {
				return nil, err
			}
			pkg := packageOf(b)
			if spans[pkg], err = s.add(spans[pkg], b, format); err != nil {
				return nil, err
			}
		}
	}
}

// planBlobs writes a catalog in motion to the spool, one file for each package.
func planBlobs(ctx context.Context, blobs func(func(declcfg.Blob, error) bool), format declcfg.Format, s *spool) ([]content, error) {
	spans := map[string][]span{}
	for b, err := range blobs {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		pkg := packageOf(b)
		if spans[pkg], err = s.add(spans[pkg], b, format); err != nil {
			return nil, err
		}
	}
	entries := map[string][]layers.Entry{}
	for pkg, sp := range spans {
		entries[pkg] = []layers.Entry{s.entry(path.Join(configsDir, pkg, "catalog."+format.Extension()), sp)}
	}
	return sortedContents(entries)
}

// sortedContents checks the names of the packages and sorts by them.
func sortedContents(entries map[string][]layers.Entry) ([]content, error) {
	var all []content
	var err error
	for pkg, es := range entries {
		if pkg != "" {
			err = errors.Join(err, checkPackageName(pkg))
		}
		all = append(all, content{pkg, es})
	}
	slices.SortFunc(all, func(a, b content) int { return strings.Compare(a.pkg, b.pkg) })
	return all, err
}
