package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"
)

// Origin holds the upgrade edges that a bundle declares for itself, independent of channels. Databases store them in
// columns of the bundle's row; file-based catalogs do not store them.
type Origin struct {
	Replaces       string
	Skips          []string
	SubstitutesFor string
}

// ownEdges are these columns as stored.
type ownEdges struct{ replaces, skips, substitutesFor text }

// readOwn reads the columns. A value that is not text counts as missing: only later additions to the package need it.
func (db *DB) readOwn(r *reader, b *bundle, columns []string, row []sql.RawBytes) error {
	for i, target := range []*text{&b.own.replaces, &b.own.skips, &b.own.substitutesFor} {
		if !utf8.Valid(row[i]) || bytes.IndexByte(row[i], 0) >= 0 {
			db.findings.add(Finding{Kind: Dropped, Bundle: b.name, Field: columns[i], Reason: "the column is not text"})
			*target = text{null: true}
			continue
		}
		t, err := r.text(columns[i], row[i])
		if err != nil {
			return err
		}
		*target = t
	}
	return nil
}

// Origins returns the declared edges of the database's bundles by the bundles' names. If a column or its value is
// missing, as in older schema versions, the ClusterServiceVersion of the bundle gives it. Bundles of which nothing is
// known are not in the map. The caller may modify the map.
func (db *DB) Origins(ctx context.Context) (map[string]Origin, error) {
	packages, err := db.loaded(ctx)
	if err != nil {
		return nil, db.wrap(err)
	}
	out := map[string]Origin{}
	for _, a := range packages {
		for _, b := range a.rows {
			if o, ok := b.origin(); ok {
				out[b.name] = o
			}
		}
	}
	return out, nil
}

func (b *bundle) origin() (o Origin, known bool) {
	var c *csv
	if b.manifests != nil {
		c = b.manifests.csv
	}
	if c != nil && c.stub && b.manifests.csvAt < 0 {
		c = nil // a ClusterServiceVersion generated from a catalog declares no edges
	}
	edges := !b.own.replaces.null || !b.own.skips.null
	switch {
	case edges:
		o.Replaces = b.own.replaces.s
		if b.own.skips.s != "" {
			o.Skips = strings.Split(b.own.skips.s, ",")
		}
	case c != nil:
		o.Replaces, o.Skips = c.replaces, slices.Clone(c.skips)
	default:
		return Origin{}, false
	}
	if !b.own.substitutesFor.null {
		o.SubstitutesFor = b.own.substitutesFor.s
	} else if c != nil {
		o.SubstitutesFor = c.substitutesFor
	}
	return o, true
}
