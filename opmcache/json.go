package opmcache

import (
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
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
)

// JSONID changes with the bytes that [JSONEntries] and [JSONTop] make of a catalog.
const JSONID = "opm-json.1"

// jsonDir is where the format has its entries, below [Dir].
const jsonDir = "cache"

// JSONEntries are the entries for one package in the format json: what a layer of the package has beside the catalog. The
// digest that opm asks for is in the entries of [JSONTop]. Names of which opm could make no file, or the same file twice,
// are an error. c is not changed.
func JSONEntries(c *declcfg.Catalog) ([]layers.Entry, error) {
	files, err := jsonFiles(c)
	return place(files, readDirMode, readFileMode), err
}

// jsonFiles are the files of a package below [Dir], each once.
func jsonFiles(c *declcfg.Catalog) ([]layers.Entry, error) {
	c, err := rounded(c)
	if err != nil {
		return nil, err
	}
	var files []layers.Entry
	known := map[string]bool{}
	for b, err := range serve.Bundles(c) {
		if err != nil {
			return nil, err
		}
		name, err := bundleFile(b.PackageName, b.ChannelName, b.CsvName)
		if err != nil {
			return nil, err
		}
		if known[name] {
			return nil, fmt.Errorf("opm cannot tell two entries apart that both have the file %q", name)
		}
		known[name] = true
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		files = append(files, layers.Bytes(path.Join(jsonDir, name), 0, text))
	}
	for i := range c.Others {
		m := &c.Others[i]
		if err := checkCustom(m); err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		sum.Write(m.Blob)
		name := path.Join(jsonDir, "metas", m.Schema, m.Package, hex.EncodeToString(sum.Sum(nil))+".json")
		if !known[name] { // the same blob twice is one file
			known[name] = true
			files = append(files, layers.Bytes(name, 0, m.Blob))
		}
	}
	return files, nil
}

// bundleFile is the name of the file of an entry.
func bundleFile(pkg, channel, bundle string) (string, error) {
	name := pkg + "_" + channel + "_" + bundle + ".json"
	if strings.ContainsAny(name, "/\x00") || len(name) > 255 || name == indexName {
		return "", fmt.Errorf("package %q, channel %.100q, bundle %.100q: opm's json cache has a file of that name, which cannot be; use --cache opm-pogreb or native, or change the name", pkg, channel, bundle)
	}
	return name, nil
}

// JSONTop makes what the format json has for the whole catalog: the index and the digest. Packages are encoded once more for
// that, one after the other. tmp is a directory for a temporary file, which is removed.
func JSONTop(ctx context.Context, tmp string, all []Package) (_ []layers.Entry, err error) {
	s, err := newSpool(tmp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
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
		files, err := jsonFiles(c)
		if err != nil {
			return nil, fmt.Errorf("opm's cache of package %q: %w", p.Name, err)
		}
		for _, f := range p.Files {
			configs = append(configs, node{name: strings.TrimPrefix(f.Name, configsDir+"/"), mode: f.Mode, size: f.Size, open: f.Open})
		}
		for _, f := range files {
			n, err := spooled(s, f)
			if err != nil {
				return nil, err
			}
			cache = append(cache, n)
		}
	}
	text, err := index.text()
	if err != nil {
		return nil, err
	}
	indexFile := layers.Bytes(path.Join(jsonDir, indexName), 0, text)
	n, err := spooled(s, indexFile)
	if err != nil {
		return nil, err
	}
	cache = append(cache, n)
	if err := s.flush(); err != nil {
		return nil, err
	}
	sum := fnv.New64a()
	for _, tree := range [...][]node{configs, cache} {
		if err := writeTree(ctx, sum, tree); err != nil {
			return nil, err
		}
	}
	digest := layers.Bytes(digestName, 0, []byte(hex.EncodeToString(sum.Sum(nil))))
	return place([]layers.Entry{indexFile, digest}, readDirMode, readFileMode), nil
}

// spooled puts the content of a file of the cache aside.
func spooled(s *spool, f layers.Entry) (n node, err error) {
	r, err := f.Open()
	if err != nil {
		return node{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(r)
	if err != nil {
		return node{}, err
	}
	at, err := s.add(text)
	return node{
		name: strings.TrimPrefix(f.Name, jsonDir+"/"), mode: readFileMode, size: at.n,
		open: func() (io.ReadCloser, error) { return io.NopCloser(s.open(at)), nil },
	}, err
}
