package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
)

// writeFile writes a database under a temporary name, checks it and renames it.
func writeFile(ctx context.Context, path string, lock *writeLock, blobs iter.Seq2[declcfg.Blob, error],
	o WriteOptions) (_ *Written, err error) {
	f, err := atomicfs.NewFile(path, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if lock.stat != nil {
		if err := atomicfs.KeepOwner(f.File, lock.stat); err != nil {
			return nil, err
		}
		if err := f.Chmod(lock.stat.Mode().Perm()); err != nil {
			return nil, err
		}
	}
	written, err := writeDatabase(ctx, f.Name(), blobs, o)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if written.Bytes = stat.Size(); written.Bytes > o.Limits.FileBytes {
		return nil, fmt.Errorf("%w: the database has %d bytes (limit %d)", ErrLimit, written.Bytes, o.Limits.FileBytes)
	}
	if err := lock.unchanged(path); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return written, f.Commit()
}

// writeDatabase fills an empty file in one transaction without a journal: the file is discarded if anything fails.
func writeDatabase(ctx context.Context, path string, blobs iter.Seq2[declcfg.Blob, error],
	o WriteOptions) (_ *Written, err error) {
	pool, err := openPool(path, "mode=rw", "_defensive=1", "_dqs=0",
		fmt.Sprintf("_pragma=page_size(%d)", pageSize),
		"_pragma=journal_mode(off)",
		"_pragma=synchronous(off)", // the file is synced as a whole before it gets its name
		"_pragma=locking_mode(exclusive)",
		"_pragma=foreign_keys(0)", // foreign keys are checked as a whole
		"_pragma=temp_store(2)",
		"_pragma=mmap_size(0)",
		"_pragma=cache_size(-8192)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, classifyWrite(ctx, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s := &statements{conn: conn, prepared: map[string]*sql.Stmt{}}
	defer s.close()
	for _, statement := range append([]string{"BEGIN EXCLUSIVE"}, writtenSchema...) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, classifyWrite(ctx, err)
		}
	}
	w := newWriter(s, o)
	if err := w.writeAll(ctx, blobs); err != nil {
		return nil, classifyWrite(ctx, err)
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return nil, classifyWrite(ctx, err)
	}
	if err := checkWritten(ctx, conn); err != nil {
		return nil, classifyWrite(ctx, err)
	}
	return &w.written, nil
}

// checkWritten checks the structure and all foreign keys of the database.
func checkWritten(ctx context.Context, conn *sql.Conn) error {
	problem, err := firstProblem(ctx, conn, "PRAGMA integrity_check(1)")
	if err != nil {
		return err
	}
	if problem != "" {
		return fmt.Errorf("%w: what was written is damaged: %s", ErrWrite, fault.Quote(problem))
	}
	rows, err := conn.QueryContext(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		var table, parent sql.NullString
		var rowid, key sql.NullInt64
		if err := rows.Scan(&table, &rowid, &parent, &key); err != nil {
			return err
		}
		return fmt.Errorf("%w: row %d of table %q refers to nothing in table %q", ErrInvalid, rowid.Int64, table.String,
			parent.String)
	}
	return rows.Err()
}

// openPool opens a file with the SQLite library, by a URI with the parameters. The path is escaped, so that no
// character of it can become a parameter.
func openPool(path string, params ...string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		path = "/" + path // a drive letter
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String()+"?"+strings.Join(params, "&"))
}

// sameFile reports whether a path still names the same file as before, or still none.
func sameFile(path string, before fs.FileInfo) (bool, error) {
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return before == nil, nil
	}
	if err != nil {
		return false, err
	}
	return before != nil && os.SameFile(before, now), nil
}
