package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// lockPoll is the interval at which a held lock is tried again.
const lockPoll = 20 * time.Millisecond

// writeLock excludes other writers of a database while its replacement is written. It consists of two locks: a flock on
// the file against other writers of this package, which replace files, and SQLite's own lock against programs that
// write into the file.
type writeLock struct {
	path string
	wait time.Duration
	stat fs.FileInfo // nil if there is no file yet
	file *os.File    // or the lock file of a new database, see openNewLock
	held bool        // the flock is held
	pool *sql.DB
	conn *sql.Conn
}

// lockForWriting locks the file at path and waits for the lock if needed.
func lockForWriting(ctx context.Context, path string, wait time.Duration) (_ *writeLock, err error) {
	deadline := time.Now().Add(wait)
	for {
		l, err := openForLocking(path, wait)
		if err != nil {
			return nil, err
		}
		if l.file != nil {
			if err := l.flock(ctx, deadline); err != nil {
				return nil, errors.Join(err, l.release())
			}
		}
		same, err := sameFile(path, l.stat)
		if err == nil && same && l.isCurrent() {
			if err = l.checkCompanions(); err == nil {
				return l, nil
			}
		}
		// If it is another file, the writer that this one waited for has replaced it.
		if err = errors.Join(err, l.release()); err != nil {
			return nil, err
		}
	}
}

// openForLocking opens the file at path, if there is one.
func openForLocking(path string, wait time.Duration) (*writeLock, error) {
	l := &writeLock{path: path, wait: wait}
	stat, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if l.file, err = openNewLock(newLockPath(path)); err != nil {
			l.file = nil // if that matters, writing the file fails too
		}
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case stat.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "write", Path: path, Err: errors.New("is a symbolic link, which is not followed")}
	case !stat.Mode().IsRegular():
		return nil, &fs.PathError{Op: "write", Path: path, Err: errors.New("exists and is not a regular file")}
	}
	if l.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if l.stat, err = l.file.Stat(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// flock waits for the lock of the open file. The file stays open meanwhile: closing it would release this process's
// SQLite locks on it.
func (l *writeLock) flock(ctx context.Context, deadline time.Time) error {
	for {
		if err := l.tryLock(); l.held || err != nil {
			return err
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("%w, which is replacing it", ErrLocked)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryLock takes the lock if no other process has it. On file systems without locks it succeeds.
func (l *writeLock) tryLock() (err error) {
	l.held, err = filelock.Take(l.file)
	return err
}

// isCurrent reports whether the lock file of a new database still has its name: the previous holder removes it.
func (l *writeLock) isCurrent() bool {
	if l.stat != nil || l.file == nil {
		return true
	}
	stat, err := l.file.Stat()
	if err != nil {
		return false
	}
	same, err := sameFile(newLockPath(l.path), stat)
	return err == nil && same
}

// newLockPath returns the lock file for creating a database. The name is that of a temporary file of package atomicfs,
// so that the next writer removes leftovers of a killed one.
func newLockPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".bindery-new")
}

// checkCompanions refuses a database with a log or journal that has content: it belongs to the existing file and would
// be applied to its replacement.
func (l *writeLock) checkCompanions() error {
	companions, err := findCompanions(l.path)
	if err != nil {
		return err
	}
	if len(companions) > 0 {
		return fmt.Errorf(
			"%w: a file %s%s is beside it, which would be applied to the new database; a program that opens the old "+
				"one for writing ends it", ErrUnsupported, l.path, companions[0])
	}
	return nil
}

// keepOut takes SQLite's lock of the database, so that no process writes into the file that is about to be replaced. A
// file that is not a database, or one in write-ahead-log mode, needs no lock: no process is writing to it, as it has no
// log with content.
func (l *writeLock) keepOut(ctx context.Context) error {
	if l.stat == nil {
		return nil
	}
	h, err := readHeader(l.file)
	if errors.Is(err, ErrNotDatabase) || errors.Is(err, ErrDamaged) || h.wal {
		return nil
	}
	if err != nil {
		return err
	}
	l.pool, err = openPool(l.path, "mode=rw", "_defensive=1", "_dqs=0",
		fmt.Sprintf("_busy_timeout=%d", max(1, l.wait.Milliseconds())), "_pragma=trusted_schema(0)",
		"_pragma=mmap_size(0)")
	if err != nil {
		return err
	}
	if l.conn, err = l.pool.Conn(ctx); err != nil {
		return classifyWrite(ctx, err)
	}
	if _, err := l.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil && !damaged(err) {
		return classifyWrite(ctx, err)
	}
	return nil
}

// unchanged checks, right before the rename, that the file has not been replaced by another one.
func (l *writeLock) unchanged(path string) error {
	same, err := sameFile(path, l.stat)
	if err == nil && !same {
		err = fmt.Errorf("%w: the file was replaced meanwhile", ErrLocked)
	}
	return errors.Join(err, l.checkCompanions())
}

func (l *writeLock) release() error {
	var errs []error
	if l.conn != nil {
		errs = append(errs, l.conn.Close())
		l.conn = nil
	}
	if l.pool != nil {
		errs = append(errs, l.pool.Close())
		l.pool = nil
	}
	if l.file != nil {
		if l.stat == nil && l.held && l.isCurrent() {
			errs = append(errs, os.Remove(newLockPath(l.path)))
		}
		errs = append(errs, l.file.Close())
		l.file = nil
	}
	return errors.Join(errs...)
}
