package opmcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// ErrNone is the error of [Check] for a directory that holds no cache of opm's.
var ErrNone = errors.New("no cache of opm's")

// Report is what [Check] found.
type Report struct {
	// Format is "opm-json" or "opm-pogreb".
	Format string `json:"format"`
	// Digest is the one in the cache, Computed the one that opm would compute. opm refuses to serve with
	// --cache-enforce-integrity, its default, where they differ.
	Digest   string `json:"digest"`
	Computed string `json:"computed"`
	// Entries are the files of opm-json, the keys of opm-pogreb.
	Entries int `json:"entries"`
}

// Valid is true if opm would take the cache.
func (r Report) Valid() bool { return r.Digest == r.Computed }

// Check reads a cache of opm's and the catalog that it should be of, and computes the digest as opm does. For opm-json the
// modes of all files and directories matter; a file system without them cannot be checked. The cache may be anybody's work:
// an error tells why it cannot be read. What the entries say is not compared with the catalog.
func Check(ctx context.Context, configs, cache fs.FS) (Report, error) {
	if info, err := fs.Stat(cache, pogrebDir); err == nil && info.IsDir() {
		sub, err := fs.Sub(cache, pogrebDir)
		if err != nil {
			return Report{}, err
		}
		return checkPogreb(ctx, configs, sub)
	}
	if info, err := fs.Stat(cache, jsonDir); err == nil && info.IsDir() {
		return checkJSON(ctx, configs, cache)
	}
	return Report{}, ErrNone
}

// readDigest reads the digest of a cache.
func readDigest(cache fs.FS) (string, error) {
	text, err := readSmall(cache, digestName, 1024)
	return strings.TrimSpace(string(text)), err
}

// readSmall reads a file that must not be longer than limit bytes.
func readSmall(fsys fs.FS, name string, limit int64) (_ []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}

// maxEntries bounds what is kept in memory of a cache that is checked.
const maxEntries = 2_000_000

func checkJSON(ctx context.Context, configs, cache fs.FS) (Report, error) {
	r := Report{Format: "opm-json"}
	var err error
	if r.Digest, err = readDigest(cache); err != nil {
		return r, err
	}
	if cache, err = fs.Sub(cache, jsonDir); err != nil {
		return r, err
	}
	sum := fnv.New64a()
	for _, tree := range [...]fs.FS{configs, cache} {
		nodes, err := nodesOf(ctx, tree)
		if err != nil {
			return r, err
		}
		if err := writeNodes(ctx, sum, nodes); err != nil {
			return r, err
		}
		r.Entries = 0
		for _, n := range nodes { // those of the cache, at last
			if !n.mode.IsDir() {
				r.Entries++
			}
		}
	}
	r.Computed = hex.EncodeToString(sum.Sum(nil))
	return r, nil
}

// nodesOf are the files and directories of a tree in the order of a walk. Symbolic links are left out, as opm does.
func nodesOf(ctx context.Context, tree fs.FS) ([]node, error) {
	var nodes []node
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.Type()&fs.ModeSymlink != 0:
			return nil
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s: neither a file nor a directory", name)
		case len(nodes) == maxEntries:
			return fmt.Errorf("more than %d files", maxEntries)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		nodes = append(nodes, node{name: name, mode: info.Mode(), size: info.Size(), open: func() (io.ReadCloser, error) { return tree.Open(name) }})
		return nil
	})
	return nodes, err
}

func checkPogreb(ctx context.Context, configs, cache fs.FS) (_ Report, err error) {
	r := Report{Format: "opm-pogreb"}
	if r.Digest, err = readDigest(cache); err != nil {
		return r, err
	}
	sum := fnv.New64a()
	err = declcfg.Walk(ctx, configs, declcfg.LoadOptions{}, func(m *declcfg.Meta) error {
		text, err := appendNumbers(make([]byte, 0, len(m.Blob)+1), m.Blob)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		sum.Write(append(text, '\n'))
		return nil
	})
	if err != nil {
		return r, err
	}
	db, err := openDatabase(cache)
	if err != nil {
		return r, fmt.Errorf("database: %w", err)
	}
	defer func() { err = errors.Join(err, db.log.Close()) }()
	if err := db.digest(ctx, sum); err != nil {
		return r, fmt.Errorf("database: %w", err)
	}
	r.Entries, r.Computed = len(db.records), hex.EncodeToString(sum.Sum(nil))
	return r, nil
}
