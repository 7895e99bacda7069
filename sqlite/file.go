package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// source is the file that the SQLite library opens: the user's file, or a private copy of it.
type source struct {
	path    string
	mode    string // the "mode" and "immutable" parameters of the URI
	tempDir string // to be removed; empty if the user's file is read

	original string // the user's file, with links resolved
	stat     fs.FileInfo
	unlocked bool // the original is read without a lock: check that it did not change
}

// openSource determines how a database file can be read without writing to it or next to it.
//
// A file in rollback-journal mode is read in place, under SQLite's shared lock. Reading a file in write-ahead-log mode
// would create files next to it: without a log it is read as immutable, otherwise file and log are copied. A rollback
// journal may have to be applied, so file and journal are copied too.
func openSource(ctx context.Context, path string, o Options) (_ *source, err error) {
	if info, err := os.Stat(path); err == nil { // before opening: opening a FIFO would block
		if err := regularfile.CheckSeekable(path, info); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNotDatabase, err)
		}
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return nil, err
	}
	f, err := os.Open(resolved)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if stat.Size() > o.Limits.FileBytes {
		return nil, fmt.Errorf("%w: the database has %d bytes (limit %d)", ErrLimit, stat.Size(), o.Limits.FileBytes)
	}
	s := &source{path: resolved, mode: "mode=ro", original: resolved, stat: stat}
	companions, err := findCompanions(resolved)
	if err != nil {
		return nil, err
	}
	if len(companions) > 0 {
		return s, s.copyPrivately(ctx, companions, o)
	}
	if h.wal {
		s.mode = "mode=ro&immutable=1"
		s.unlocked = true
	}
	return s, h.checkSize(stat.Size())
}

// findCompanions returns the suffixes of the files next to a database that may have part of its content.
func findCompanions(path string) ([]string, error) {
	var found []string
	for _, suffix := range []string{"-wal", "-journal"} {
		stat, err := os.Lstat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !stat.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s beside it is not a regular file", ErrUnsupported, suffix)
		}
		pending := stat.Size() > 0
		if pending && suffix == "-journal" {
			if pending, err = checkJournal(path + suffix); err != nil {
				return nil, err
			}
		}
		if pending {
			found = append(found, suffix)
		}
	}
	return found, nil
}

// journalMagic is the start of a rollback journal that may have to be applied. An inactive journal has zeros there.
var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// checkJournal reports whether a rollback journal may have to be applied. It refuses one that names a super-journal:
// SQLite would open, read and delete the file of that name, wherever it is.
func checkJournal(path string) (pending bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return false, err
	}
	n := int64(len(journalMagic))
	if stat.Size() < n {
		return false, nil
	}
	start, end := make([]byte, n), make([]byte, n)
	if _, err := f.ReadAt(start, 0); err != nil {
		return false, err
	}
	if _, err := f.ReadAt(end, stat.Size()-n); err != nil {
		return false, err
	}
	if bytes.Equal(end, journalMagic) && stat.Size() > n {
		return false, fmt.Errorf("%w: its rollback journal belongs to a transaction over several databases",
			ErrUnsupported)
	}
	return bytes.Equal(start, journalMagic), nil
}

// copyPrivately copies the database and its journal files to a private directory, where SQLite applies them. No lock
// covers all files, so they are copied again if they changed meanwhile.
func (s *source) copyPrivately(ctx context.Context, companions []string, o Options) (err error) {
	if s.tempDir, err = os.MkdirTemp(o.TempDir, "bindery-sqlite-"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	s.path = filepath.Join(s.tempDir, "index.db")
	files := append([]string{""}, companions...)
	const attempts = 3
	for range attempts {
		before, err := statAll(s.original, files)
		if err != nil {
			return err
		}
		for _, suffix := range files {
			if err := copyFile(ctx, s.original+suffix, s.path+suffix, o.Limits.FileBytes); err != nil {
				return err
			}
		}
		after, err := statAll(s.original, files)
		if err != nil {
			return err
		}
		if slices.Equal(before, after) {
			return s.applyJournal(ctx)
		}
	}
	return fmt.Errorf("%w: it changed %d times while it was being copied", ErrLocked, attempts)
}

// applyJournal applies the journal or log to the private copy, so that the database file is complete.
func (s *source) applyJournal(ctx context.Context) (err error) {
	s.mode = "mode=rw"
	db, err := s.pool()
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	var mode string
	var objects int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects)
	if err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA journal_mode=delete").Scan(&mode)
	}
	if err == nil && mode != "delete" {
		err = fmt.Errorf("%w: its write-ahead log cannot be applied", ErrDamaged)
	}
	s.mode = "mode=ro&immutable=1"
	return errors.Join(classify(ctx, err), db.Close())
}

// fileState identifies the version of a file, to detect changes.
type fileState struct {
	size int64
	time time.Time
}

func statAll(path string, suffixes []string) ([]fileState, error) {
	states := make([]fileState, len(suffixes))
	for i, suffix := range suffixes {
		stat, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue // its writer has just finished
		}
		if err != nil {
			return nil, err
		}
		states[i] = fileState{stat.Size(), stat.ModTime()}
	}
	return states, nil
}

func copyFile(ctx context.Context, from, to string, limit int64) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(to)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(ctxio.Reader{Ctx: ctx, R: in}, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrLimit, from, limit)
	}
	return err
}

// unchanged checks that a file that was read without a lock did not change.
func (s *source) unchanged() error {
	if !s.unlocked {
		return nil
	}
	now, err := os.Stat(s.original)
	if err != nil {
		return err
	}
	if now.Size() != s.stat.Size() || !now.ModTime().Equal(s.stat.ModTime()) {
		return fmt.Errorf("%w: it was written to while it was being read", ErrLocked)
	}
	return nil
}

func (s *source) remove() error {
	if s.tempDir == "" {
		return nil
	}
	return os.RemoveAll(s.tempDir)
}

// pool opens the file with the SQLite library.
func (s *source) pool() (*sql.DB, error) {
	params := []string{
		s.mode,
		"_defensive=1",
		"_dqs=0",
		"_busy_timeout=2000",
		"_pragma=trusted_schema(0)",
		"_pragma=cell_size_check(1)",
		"_pragma=ignore_check_constraints(1)", // a check constraint could run code of the database's author
		"_pragma=temp_store(2)",
		"_pragma=mmap_size(0)",
		"_pragma=cache_size(-1024)",
	}
	if s.mode != "mode=rw" {
		params = append(params, "_query_only=1")
	}
	return openPool(s.path, params...)
}
