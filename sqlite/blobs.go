package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Blobs loads the database and yields the catalog, in opm's writing order. Everything is checked before the first blob
// is yielded. One bundle's manifests are in memory at a time, and those of the next ones that are being read ahead.
// The iteration ends after the first error. It can be repeated, and run concurrently with others.
func (db *DB) Blobs(ctx context.Context) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		packages, err := db.loaded(ctx)
		if err != nil {
			yield(nil, db.wrap(err))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		items := make(chan item, 1)
		go func() {
			defer close(items)
			if err := db.produce(ctx, packages, items); err != nil {
				send(ctx, items, item{err: db.wrap(classify(ctx, err))})
			}
		}()
		for it := range items {
			if !yield(it.blob, it.err) || it.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, db.wrap(err))
		}
	}
}

// item is a blob on its way from the reader to the consumer.
type item struct {
	blob declcfg.Blob
	err  error
}

func send(ctx context.Context, items chan<- item, it item) bool {
	select {
	case items <- it:
		return true
	case <-ctx.Done():
		return false
	}
}

func (db *DB) produce(ctx context.Context, packages []*assembled, items chan<- item) (err error) {
	conn, err := db.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, a := range packages {
		pkg := a.catalog.Packages[0]
		if pkg.Icon, err = db.icon(ctx, conn, a); err != nil {
			return err
		}
		if !send(ctx, items, item{blob: &pkg}) {
			return nil
		}
		for i := range a.catalog.Channels {
			if !send(ctx, items, item{blob: &a.catalog.Channels[i]}) {
				return nil
			}
		}
		for i := range a.catalog.Bundles {
			b := a.catalog.Bundles[i]
			if err := db.addObjects(ctx, conn, &b, a.rows[i]); err != nil {
				return fmt.Errorf("bundle %s: %w", quote(b.Name), err)
			}
			if !send(ctx, items, item{blob: &b}) {
				return nil
			}
		}
		for i := range a.catalog.Deprecations {
			if !send(ctx, items, item{blob: &a.catalog.Deprecations[i]}) {
				return nil
			}
		}
	}
	return db.source.unchanged()
}

// column reads one value of a bundle's row, and passes it to fn; it is not valid any more when fn returns.
func column(ctx context.Context, conn *sql.Conn, name string, rowid int64, fn func([]byte) error) error {
	rows, err := conn.QueryContext(ctx, "SELECT "+name+" FROM operatorbundle WHERE rowid = ?", rowid)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), fmt.Errorf("%w: its row has gone", ErrDamaged))
	}
	var value sql.RawBytes
	if err := rows.Scan(&value); err != nil {
		return err
	}
	return fn(value)
}

// icon reads the icon of a package. A broken one is a finding, as opm only warns of it.
func (db *DB) icon(ctx context.Context, conn *sql.Conn, a *assembled) (icon *declcfg.Icon, err error) {
	b := a.iconOf
	if b == nil || b.manifests == nil || b.manifests.csv == nil {
		return nil, nil
	}
	name, part := "csv", func(value []byte) []byte { return value }
	if !b.hasCSV {
		name, part = "bundle", b.manifests.objects[b.manifests.csvAt].of
	}
	err = column(ctx, conn, name, b.rowid, func(value []byte) error {
		var problem error
		if icon, problem = readIcon(part(value)); problem != nil {
			db.findings.add(Finding{Kind: Dropped, Package: a.catalog.Packages[0].Name, Bundle: b.name, Field: "icon",
				Reason: "the icon is not base64: " + shorten(problem).Error()})
		}
		return nil
	})
	return icon, err
}

// addObjects adds the manifests of a bundle to its properties, sorted, and moves those types to the end that opm keeps
// there.
func (db *DB) addObjects(ctx context.Context, conn *sql.Conn, b *declcfg.Bundle, row *bundle) error {
	m := row.manifests
	spans := m.objects
	if db.options.CSVOnly && m.csvAt >= 0 && b.Image != "" {
		spans = spans[m.csvAt : m.csvAt+1]
	}
	var objects []declcfg.Property
	if len(spans) > 0 {
		err := column(ctx, conn, "bundle", row.rowid, func(value []byte) error {
			if int(m.objects[len(m.objects)-1].end) > len(value) {
				return fmt.Errorf("%w: its manifests have changed", ErrLocked)
			}
			objects = encodeObjects(value, spans)
			return nil
		})
		if err != nil {
			return err
		}
	}
	last := func(p declcfg.Property) bool {
		return p.Type == declcfg.PropertyBundleObject || p.Type == declcfg.PropertyCSVMetadata
	}
	properties := make([]declcfg.Property, 0, len(b.Properties)+len(objects))
	for _, p := range b.Properties {
		if last(p) {
			objects = append(objects, p)
		} else {
			properties = append(properties, p)
		}
	}
	slices.SortFunc(objects, func(x, y declcfg.Property) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), strings.Compare(string(x.Value), string(y.Value)))
	})
	b.Properties = append(properties, objects...)
	return nil
}

// encodeObjects makes the olm.bundle.object properties of a bundle. Their values share one allocation.
func encodeObjects(column []byte, spans []span) []declcfg.Property {
	const prefix, suffix = `{"data":"`, `"}`
	size := 0
	for _, s := range spans {
		size += len(prefix) + base64.StdEncoding.EncodedLen(int(s.end-s.start)) + len(suffix)
	}
	buf := make([]byte, 0, size)
	out := make([]declcfg.Property, len(spans))
	for i, s := range spans {
		start := len(buf)
		buf = append(buf, prefix...)
		buf = base64.StdEncoding.AppendEncode(buf, s.of(column))
		buf = append(buf, suffix...)
		out[i] = declcfg.Property{Type: declcfg.PropertyBundleObject, Value: buf[start:len(buf):len(buf)]}
	}
	return out
}
