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
	"sort"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Blobs loads the database and yields the catalog in opm's writing order. Everything is validated before the first
// blob. One bundle's manifests are in memory at a time, plus those that are read ahead. The iteration ends after the
// first error. It can be repeated, also concurrently.
func (db *DB) Blobs(ctx context.Context) iter.Seq2[declcfg.Blob, error] {
	return db.BlobsOf(ctx, nil)
}

// BlobsOf works like [DB.Blobs] for the packages for which wanted returns true; a nil function selects all.
func (db *DB) BlobsOf(ctx context.Context, wanted func(pkg string) bool) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		packages, err := db.loaded(ctx)
		if err != nil {
			yield(nil, db.wrap(err))
			return
		}
		if wanted != nil {
			packages = slices.DeleteFunc(slices.Clone(packages),
				func(a *assembled) bool { return !wanted(a.catalog.Packages[0].Name) })
		}
		ctx, cancel := context.WithCancel(ctx)
		s := &stream{ctx: ctx, items: make(chan item), free: make(chan []byte, 3)}
		go func() {
			defer close(s.items)
			if err := guard.Call(func() error { return db.produce(s, packages) }); err != nil {
				s.send(item{err: db.wrap(classify(ctx, err))})
			}
		}()
		// The caller may close the database after the iteration, so wait until nothing reads it any more.
		defer func() {
			cancel()
			for range s.items {
			}
		}()
		for it := range s.items {
			if !yield(it.blob, it.err) || it.err != nil {
				return
			}
			if db.options.Reuse && it.buf != nil {
				s.free <- it.buf // at most two buffers are in use, so this does not block
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, db.wrap(err))
		}
	}
}

// stream connects the goroutine that reads with the one that consumes.
type stream struct {
	ctx   context.Context
	items chan item
	free  chan []byte // buffers of consumed manifests
}

// item is a blob in the stream. buf is the buffer that its manifests are in.
type item struct {
	blob declcfg.Blob
	buf  []byte
	err  error
}

func (s *stream) send(it item) bool {
	select {
	case s.items <- it:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// buffer returns a buffer of a size, new or reused.
func (s *stream) buffer(size int) []byte {
	select {
	case buf := <-s.free:
		if cap(buf) >= size {
			return buf[:0]
		}
	default:
	}
	return make([]byte, 0, size)
}

func (db *DB) produce(s *stream, packages []*assembled) (err error) {
	ctx := s.ctx
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
		if !s.send(item{blob: &pkg}) {
			return nil
		}
		for i := range a.catalog.Channels {
			if !s.send(item{blob: &a.catalog.Channels[i]}) {
				return nil
			}
		}
		for i := range a.catalog.Bundles {
			b := a.catalog.Bundles[i]
			b.RelatedImages = slices.Clone(b.RelatedImages)
			buf, err := db.addObjects(s, conn, &b, a.rows[i])
			if err != nil {
				return fmt.Errorf("bundle %s: %w", fault.Quote(b.Name), err)
			}
			if !s.send(item{blob: &b, buf: buf}) {
				return nil
			}
		}
		for i := range a.catalog.Deprecations {
			if !s.send(item{blob: &a.catalog.Deprecations[i]}) {
				return nil
			}
		}
	}
	return db.source.unchanged()
}

// column reads one value of a bundle's row and passes it to fn; it is valid only during the call.
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

// icon reads the icon of a package. An undecodable one is a finding, as opm only warns about it.
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

// addObjects adds the manifests of a bundle to its properties, sorted, followed by the types that opm puts at the end.
// It returns the buffer with the manifests.
func (db *DB) addObjects(s *stream, conn *sql.Conn, b *declcfg.Bundle, row *bundle) (buf []byte, err error) {
	m := row.manifests
	spans := m.objects
	if db.options.CSVOnly && m.csvAt >= 0 && b.Image != "" && !row.hasProperty(declcfg.PropertyCSVMetadata) {
		spans = spans[m.csvAt : m.csvAt+1]
	}
	var objects []declcfg.Property
	if len(spans) > 0 {
		err := column(s.ctx, conn, "bundle", row.rowid, func(value []byte) error {
			if int(m.objects[len(m.objects)-1].end) > len(value) {
				return fmt.Errorf("%w: its manifests have changed", ErrLocked)
			}
			buf = s.buffer(encodedSize(spans))
			objects, buf = encodeObjects(buf, value, spans)
			return nil
		})
		if err != nil {
			return nil, err
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
	sort.SliceStable(objects, func(i, j int) bool {
		x, y := &objects[i], &objects[j]
		stored := db.options.Stored && x.Type == declcfg.PropertyBundleObject && y.Type == x.Type
		return !stored && compareProperties(x, y) < 0
	})
	b.Properties = append(properties, objects...)
	return buf, nil
}

const objectPrefix, objectSuffix = `{"data":"`, `"}`

// encodedSize returns the size of a bundle's olm.bundle.object properties.
func encodedSize(spans []span) (size int) {
	for _, s := range spans {
		size += len(objectPrefix) + base64.StdEncoding.EncodedLen(int(s.end-s.start)) + len(objectSuffix)
	}
	return size
}

// encodeObjects encodes the olm.bundle.object properties of a bundle into buf, which is large enough.
func encodeObjects(buf, column []byte, spans []span) ([]declcfg.Property, []byte) {
	out := make([]declcfg.Property, len(spans))
	for i, s := range spans {
		start := len(buf)
		buf = append(buf, objectPrefix...)
		buf = base64.StdEncoding.AppendEncode(buf, s.of(column))
		buf = append(buf, objectSuffix...)
		out[i] = declcfg.Property{Type: declcfg.PropertyBundleObject, Value: buf[start:len(buf):len(buf)]}
	}
	return out, buf
}
