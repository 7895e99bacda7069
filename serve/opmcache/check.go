package opmcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"

	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// errNone is returned by [Check] for a directory without a cache of opm's.
var errNone = errors.New("no cache of opm's")

// The formats in a [Report].
const (
	formatJSON   = "opm-json"
	formatPogreb = "opm-pogreb"
)

// Report is the result of [Check].
type Report struct {
	// Format is "opm-json" or "opm-pogreb".
	Format string `json:"format"`
	// Digest is the one in the cache, Computed the one that opm would compute. If they differ, opm refuses to serve
	// with --cache-enforce-integrity, its default.
	Digest   string `json:"digest"`
	Computed string `json:"computed"`
	// Entries is the number of files of opm-json, or of keys of opm-pogreb.
	Entries int `json:"entries"`
}

// Valid reports whether opm would accept the cache.
func (r Report) Valid() bool { return r.Digest == r.Computed }

// Check reads a cache of opm's and its catalog, and computes the digest as opm does. For opm-json the modes of all
// files and directories matter; a file system without them cannot be checked. The cache is untrusted: an error explains
// why it cannot be read. The content of entries is not compared with the catalog.
func Check(ctx context.Context, configs, cache fs.FS) (Report, error) {
	if info, err := fs.Stat(cache, opmformat.PogrebDir); err == nil && info.IsDir() {
		sub, err := fs.Sub(cache, opmformat.PogrebDir)
		if err != nil {
			return Report{}, err
		}
		return checkPogreb(ctx, configs, sub)
	}
	if info, err := fs.Stat(cache, opmformat.JSONDir); err == nil && info.IsDir() {
		return checkJSON(ctx, configs, cache)
	}
	return Report{}, errNone
}

func checkJSON(ctx context.Context, configs, cache fs.FS) (Report, error) {
	r := Report{Format: formatJSON}
	var err error
	if r.Digest, err = readDigest(cache); err != nil {
		return r, err
	}
	if cache, err = fs.Sub(cache, opmformat.JSONDir); err != nil {
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
		for _, n := range nodes { // the last tree is that of the cache
			if !n.Mode.IsDir() {
				r.Entries++
			}
		}
	}
	r.Computed = hex.EncodeToString(sum.Sum(nil))
	return r, nil
}

func checkPogreb(ctx context.Context, configs, cache fs.FS) (_ Report, err error) {
	r := Report{Format: formatPogreb}
	if r.Digest, err = readDigest(cache); err != nil {
		return r, err
	}
	sum := fnv.New64a()
	if err := writeCatalog(ctx, sum, configs); err != nil {
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
