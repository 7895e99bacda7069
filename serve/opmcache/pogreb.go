package opmcache

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"path"
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// PogrebTop returns the cache of a catalog in the format pogreb.v1 as entries of a separate layer. tmp is a directory
// for temporary files; one of them is the content of an entry and is removed after it has been read. opm reads all
// numbers as float64 and hashes these: numbers beyond that are an error, and so are names that its keys cannot
// distinguish.
func PogrebTop(ctx context.Context, tmp string, all []Package) (_ []layers.Entry, err error) {
	db, err := newDatabase(tmp)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.s.Close())
		}
	}()
	texts := spool.New(tmp, 0)
	defer func() { err = errors.Join(err, texts.Close()) }()

	h := pogrebHash{texts: texts, spans: map[string][]spool.Span{}}
	index := packageIndex{}
	for _, p := range sortedPackages(all) {
		if err := h.addPackage(ctx, db, p, index); err != nil {
			return nil, fmt.Errorf("opm's cache of package %q: %w", p.Name, err)
		}
	}
	text, err := index.text()
	if err != nil {
		return nil, err
	}
	if err := db.appendEntry([]byte(opmformat.IndexName), text); err != nil {
		return nil, err
	}
	digest, err := h.sum(ctx, db)
	if err != nil {
		return nil, err
	}
	files := db.files()
	for i := range files {
		files[i].Name = path.Join(opmformat.PogrebDir, "db", files[i].Name)
	}
	files = append(files, layers.Bytes(path.Join(opmformat.PogrebDir, opmformat.DigestName), 0, []byte(digest)))
	return placeBelowDir(files, writeDirMode, writeFileMode), nil
}

// pogrebHash collects the input of opm's digest.
type pogrebHash struct {
	texts *spool.Spool // canonical blobs, each with a newline
	spans map[string][]spool.Span
}

// addPackage adds a package to the database and its text to the digest.
func (h *pogrebHash) addPackage(ctx context.Context, db *database, p Package, index packageIndex) error {
	c, err := p.load(ctx, func(file string, m *declcfg.Meta) error {
		text, err := appendNumbers(make([]byte, 0, len(m.Blob)+1), m.Blob)
		if err != nil {
			return err
		}
		at, err := h.texts.Append(append(text, '\n'))
		if err != nil {
			return err
		}
		m.Blob = text
		if list := h.spans[file]; len(list) > 0 && list[len(list)-1].At+list[len(list)-1].Len == at.At {
			list[len(list)-1].Len += at.Len
			return nil
		}
		h.spans[file] = append(h.spans[file], at)
		return nil
	})
	if err != nil {
		return err
	}
	return putPackage(db, c, index)
}

// putPackage adds the entries of a package, with numbers as opm reads them.
func putPackage(db *database, c *declcfg.Catalog, index packageIndex) error {
	if err := index.add(c); err != nil {
		return err
	}
	graph, err := c.Graph()
	if err != nil {
		return err
	}
	for _, pkg := range graph.Packages {
		for _, b := range pkg.Bundles {
			if err := putBundle(db, pkg, b); err != nil {
				return err
			}
		}
	}
	return putCustom(db, c)
}

// putBundle adds the entries of a bundle, one for each channel.
func putBundle(db *database, pkg *declcfg.PackageNode, b *declcfg.BundleNode) error {
	all, err := serve.BundleAnswers(pkg, b)
	if err != nil {
		return err
	}
	for _, a := range all {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
		if err != nil {
			return err
		}
		if err := db.appendEntry(bundleKey(a.PackageName, a.ChannelName, a.CsvName), value); err != nil {
			return err
		}
	}
	return nil
}

func bundleKey(pkg, channel, bundle string) []byte {
	return []byte("bundles/" + pkg + "/" + channel + "/" + bundle)
}

// putCustom adds the custom blobs: those of one schema and package under one key, each preceded by its length.
func putCustom(db *database, c *declcfg.Catalog) error {
	values := map[string][]byte{}
	var keys []string
	for i := range c.Others {
		m := &c.Others[i]
		if err := checkCustom(m); err != nil {
			return err
		}
		message, err := customMessage(m.Blob)
		if err != nil {
			return fmt.Errorf("blob of schema %q, name %q: %w", m.Schema, m.Name, err)
		}
		key := "metas/" + m.Schema + "/" + m.Package
		if _, known := values[key]; !known {
			keys = append(keys, key)
		}
		values[key] = append(binary.BigEndian.AppendUint32(values[key], uint32(len(message))), message...)
	}
	for _, key := range keys {
		if err := db.appendEntry([]byte(key), values[key]); err != nil {
			return err
		}
	}
	return nil
}

// sum returns the digest of the texts of all files in the order of a walk through /configs, followed by all entries of
// the database sorted by key.
func (h *pogrebHash) sum(ctx context.Context, db *database) (string, error) {
	sum := fnv.New64a()
	for _, file := range slices.SortedFunc(maps.Keys(h.spans), comparePaths) {
		for _, at := range h.spans[file] {
			if err := h.texts.Copy(ctx, sum, at); err != nil {
				return "", err
			}
		}
	}
	if err := db.digest(ctx, sum); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// digest writes all entries sorted by key.
func (d *database) digest(ctx context.Context, w io.Writer) error {
	sorted := slices.Clone(d.records)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].key < sorted[j].key })
	for i, r := range sorted {
		if i > 0 && sorted[i-1].key == r.key {
			return fmt.Errorf("opm cannot tell two entries apart that both have the key %.200q", r.key)
		}
		if _, err := io.WriteString(w, r.key); err != nil {
			return err
		}
		if err := d.s.Copy(ctx, w, r.value()); err != nil {
			return err
		}
	}
	return nil
}

// readOnce is a reader that closes its spool.
type readOnce struct {
	io.Reader
	of *spool.Spool
}

func (r readOnce) Close() error { return r.of.Close() }
