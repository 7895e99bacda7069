package opmcache

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// JSONEntries returns the entries of one package in the format json, which are in the package's layer next to its
// catalog. The digest is in the entries of [JSONTop]. Names that opm could not use as file names, or that give the same
// file twice, are an error. c is not changed, and must not change until the entries have been read.
func JSONEntries(c *declcfg.Catalog) ([]layers.Entry, error) { return jsonEntries(c, keptText) }

func jsonEntries(c *declcfg.Catalog, keep int) ([]layers.Entry, error) {
	var files []layers.Entry
	kept := 0
	err := jsonFiles(c, func(f jsonFile) error {
		if kept += len(f.text); kept <= keep {
			files = append(files, layers.Bytes(f.name, 0, f.text))
			return nil
		}
		again := f.again
		files = append(files, layers.Entry{Name: f.name, Size: int64(len(f.text)), Open: func() (io.ReadCloser, error) {
			text, err := again()
			return io.NopCloser(bytes.NewReader(text)), err
		}})
		return nil
	})
	return placeBelowDir(files, readDirMode, readFileMode), err
}

// keptText is how many bytes of a package's entries stay in memory until they are read. The rest is encoded twice, for
// sizes and for bytes: the entries of a package can be several times as large as its catalog.
const keptText = 16 << 20

// jsonFile is a file below [Dir].
type jsonFile struct {
	name  string
	text  []byte
	again func() ([]byte, error) // encodes the text again
}

// jsonFiles calls do once for each file of a package.
func jsonFiles(c *declcfg.Catalog, do func(jsonFile) error) error {
	c, err := rounded(c)
	if err != nil {
		return err
	}
	graph, err := c.Graph()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, pkg := range graph.Packages {
		for _, b := range pkg.Bundles {
			if err := bundleFiles(pkg, b, known, do); err != nil {
				return err
			}
		}
	}
	for i := range c.Others {
		m := &c.Others[i]
		if err := checkCustom(m); err != nil {
			return err
		}
		sum := fnv.New64a()
		sum.Write(m.Blob)
		name := path.Join(opmformat.JSONDir, "metas", m.Schema, m.Package, hex.EncodeToString(sum.Sum(nil))+".json")
		if known[name] {
			continue // the same blob twice is one file
		}
		known[name] = true
		if err := do(jsonFile{name, m.Blob, func() ([]byte, error) { return m.Blob, nil }}); err != nil {
			return err
		}
	}
	return nil
}

// bundleFiles calls do for the files of a bundle's entries.
func bundleFiles(pkg *declcfg.PackageNode, b *declcfg.BundleNode, known map[string]bool,
	do func(jsonFile) error) error {
	all, err := serve.BundleAnswers(pkg, b)
	if err != nil {
		return err
	}
	for i, a := range all {
		name, err := bundleFile(a.PackageName, a.ChannelName, a.CsvName)
		if err != nil {
			return err
		}
		if known[name] {
			return fmt.Errorf("opm cannot tell two entries apart that both have the file %q", name)
		}
		known[name] = true
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		again := func() ([]byte, error) {
			all, err := serve.BundleAnswers(pkg, b)
			if err != nil {
				return nil, err
			}
			return json.Marshal(all[i])
		}
		if err := do(jsonFile{path.Join(opmformat.JSONDir, name), text, again}); err != nil {
			return err
		}
	}
	return nil
}

// bundleFile returns the name of the file of an entry.
func bundleFile(pkg, channel, bundle string) (string, error) {
	name := pkg + "_" + channel + "_" + bundle + ".json"
	if strings.ContainsAny(name, "/\x00") || len(name) > 255 || name == opmformat.IndexName {
		return "",
			fmt.Errorf(
				"package %q, channel %.100q, bundle %.100q: opm's json cache has a file of that name, which cannot "+
					"be; use --cache opm-pogreb or native, or change the name", pkg, channel, bundle)
	}
	return name, nil
}

// JSONTop returns the entries of the format json for the whole catalog: the index and the digest. It encodes the
// packages once more, one after the other. tmp is a directory for a temporary file, which is removed.
func JSONTop(ctx context.Context, tmp string, all []Package) (_ []layers.Entry, err error) {
	s := spool.New(tmp, 0)
	defer func() { err = errors.Join(err, s.Close()) }()
	index := packageIndex{}
	var configs, cache []node
	for _, p := range sortedPackages(all) {
		c, err := p.load(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("opm's cache of package %q: %w", p.Name, err)
		}
		if err := index.add(c); err != nil {
			return nil, fmt.Errorf("opm's cache of package %q: %w", p.Name, err)
		}
		err = jsonFiles(c, func(f jsonFile) error {
			n, err := spooled(s, f.name, f.text)
			cache = append(cache, n)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("opm's cache of package %q: %w", p.Name, err)
		}
		for _, f := range p.Files {
			configs = append(configs,
				node{Name: strings.TrimPrefix(f.Name, configsDir+"/"), Mode: f.Mode, Size: f.Size, Open: f.Open})
		}
	}
	text, err := index.text()
	if err != nil {
		return nil, err
	}
	indexFile := layers.Bytes(path.Join(opmformat.JSONDir, opmformat.IndexName), 0, text)
	n, err := spooled(s, indexFile.Name, text)
	if err != nil {
		return nil, err
	}
	cache = append(cache, n)
	sum := fnv.New64a()
	for _, tree := range [...][]node{configs, cache} {
		if err := writeTree(ctx, sum, tree); err != nil {
			return nil, err
		}
	}
	digest := layers.Bytes(opmformat.DigestName, 0, []byte(hex.EncodeToString(sum.Sum(nil))))
	return placeBelowDir([]layers.Entry{indexFile, digest}, readDirMode, readFileMode), nil
}

// spooled appends the content of a cache file to the spool.
func spooled(s *spool.Spool, name string, text []byte) (node, error) {
	at, err := s.Append(text)
	return node{
		Name: strings.TrimPrefix(name, opmformat.JSONDir+"/"), Mode: readFileMode, Size: at.Len,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(s.Open(at)), nil },
	}, err
}
