package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

// scanned is a row of operatorbundle to be parsed.
type scanned struct {
	bundle *bundle
	buf    []byte
	csv    int // length of the csv column, which comes first in buf
}

// readBundles reads all rows of operatorbundle once. One goroutine reads while others parse; at most Jobs+1 rows are in
// memory. A row whose manifests cannot be parsed is kept with its problem.
func (db *DB) readBundles(r *reader) (map[string]*bundle, error) {
	bundles := map[string]*bundle{}
	rows := make(chan scanned)
	free := make(chan []byte, db.options.Jobs+1)
	for range cap(free) {
		free <- nil
	}
	var workers sync.WaitGroup
	for range db.options.Jobs {
		workers.Go(func() {
			for s := range rows {
				s.bundle.problem = guard.Call(func() error {
					m, _, err := readManifests(s.buf[:s.csv], s.buf[s.csv:])
					if err == nil {
						s.bundle.manifests = m
					}
					return err
				})
				free <- s.buf
			}
		})
	}
	columns := []string{"name", "version", "bundlepath", "skiprange", "rowid", "csv", "bundle", "replaces", "skips",
		"substitutesfor"}
	err := r.forEachRow(db.schema, "operatorbundle", columns, func(row []sql.RawBytes) error {
		b := &bundle{hasCSV: len(row[5]) > 0}
		var name text
		if err := r.texts(columns, row, &name, &b.version, &b.path, &b.skipRange); err != nil {
			return err
		}
		var err error
		if b.rowid, err = integer("rowid", row[4]); err != nil {
			return err
		}
		if name.null {
			// opm's migration to version 5 inserted such rows where it should have updated others.
			db.findings.add(Finding{Kind: Dropped,
				Reason: fmt.Sprintf("row %d of table operatorbundle has no name", b.rowid)})
			return nil
		}
		b.name = name.s
		if bundles[b.name] != nil {
			return fmt.Errorf("%w: bundle %s appears twice", ErrInvalid, fault.Quote(b.name))
		}
		bundles[b.name] = b
		if err := db.readOrigin(r, b, columns[7:], row[7:]); err != nil {
			return err
		}
		buf := <-free
		buf = append(append(buf[:0], row[5]...), row[6]...)
		select {
		case rows <- scanned{b, buf, len(row[5])}:
			return nil
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	})
	close(rows)
	workers.Wait()
	return bundles, err
}
