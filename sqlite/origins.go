package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/declcfg"
)

// originColumns are the columns with the edges that a bundle declares for itself, as stored.
type originColumns struct{ replaces, skips, substitutesFor text }

// readOrigin reads the columns. A value that is not text counts as missing: only later additions to the package need it.
func (db *DB) readOrigin(r *reader, b *bundle, columns []string, row []sql.RawBytes) error {
	for i, target := range []*text{&b.declared.replaces, &b.declared.skips, &b.declared.substitutesFor} {
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
func (db *DB) Origins(ctx context.Context) (map[string]declcfg.Origin, error) {
	packages, err := db.loaded(ctx)
	if err != nil {
		return nil, db.wrap(err)
	}
	out := map[string]declcfg.Origin{}
	for _, a := range packages {
		for _, b := range a.rows {
			if o, ok := b.origin(); ok {
				out[b.name] = o
			}
		}
	}
	return out, nil
}

func (b *bundle) origin() (o declcfg.Origin, known bool) {
	var c *csv
	if b.manifests != nil {
		c = b.manifests.csv
	}
	if c != nil && c.stub && b.manifests.csvAt < 0 {
		c = nil // a ClusterServiceVersion generated from a catalog declares no edges
	}
	edges := !b.declared.replaces.null || !b.declared.skips.null
	switch {
	case edges:
		o.Replaces = b.declared.replaces.s
		if b.declared.skips.s != "" {
			o.Skips = strings.Split(b.declared.skips.s, ",")
		}
	case c != nil:
		o.Replaces, o.Skips = c.replaces, slices.Clone(c.skips)
	default:
		return declcfg.Origin{}, false
	}
	if !b.declared.substitutesFor.null {
		o.SubstitutesFor = b.declared.substitutesFor.s
	} else if c != nil {
		o.SubstitutesFor = c.substitutesFor
	}
	return o, true
}
