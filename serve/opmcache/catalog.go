package opmcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
)

// Package is a package in an image.
type Package struct {
	// Name is empty for blobs of no package.
	Name string
	// Files are the files of the package, each with blobs of only this package. Their names begin with "configs/".
	Files []layers.Entry
}

// configsDir is the directory of the catalog in an image.
const configsDir = "configs"

// Where the cache is in an image, and what the bytes that this package gives for a catalog depend on.
const (
	// Dir is the directory of opm's cache in an image, relative to the root.
	Dir = "tmp/cache"
	// JSONID changes with the bytes that [JSONEntries] and [JSONTop] give for a catalog.
	JSONID = "opm-json.2"
	// PogrebID changes with the bytes that [PogrebTop] gives for a catalog.
	PogrebID = "opm-pogreb.2"
)

// load reads a package. each, unless nil, is called with every blob before it is decoded and the name of its file below
// configs; it may replace the blob's text.
func (p Package) load(ctx context.Context, each func(file string, m *declcfg.Meta) error) (*declcfg.Catalog, error) {
	c := &declcfg.Catalog{}
	r := declcfg.NewReader(declcfg.LoadOptions{Lazy: true})
	for _, e := range p.Files {
		name, ok := strings.CutPrefix(e.Name, configsDir+"/")
		if !ok {
			return nil, fmt.Errorf("%q is not below %s", e.Name, configsDir)
		}
		if err := readFile(ctx, r, name, e, c, each); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return c, nil
}

func readFile(ctx context.Context, r *declcfg.Reader, name string, e layers.Entry, into *declcfg.Catalog,
	each func(string, *declcfg.Meta) error) (err error) {
	in, err := e.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r.Reset(in, name)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m, err := r.NextMeta()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if each != nil {
			if err := each(name, m); err != nil {
				return fmt.Errorf("line %d: %w", m.Pos.Line, err)
			}
		}
		b, err := m.Parse()
		if err != nil {
			return err
		}
		into.Add(b)
	}
}

func sortedPackages(all []Package) []Package {
	all = slices.Clone(all)
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// comparePaths orders names as a directory walk does.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
