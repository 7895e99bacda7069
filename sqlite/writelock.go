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

// lockPoll is how often a held lock is tried again.
const lockPoll = 20 * time.Millisecond

// writeLock keeps other writers from a database while a new one is being made in its place. There are two locks: one of
// the file for other writers of this package, which replace files, and SQLite's own for programs that write into them.
type writeLock struct {
	path string
	wait time.Duration
	stat fs.FileInfo // nil if there is no file yet
	file *os.File    // or what stands for it while it is made, see openNewLock
	held bool        // the lock of file was had
	pool *sql.DB
	conn *sql.Conn
}

// lockForWriting takes the lock of the file at path, or waits for it.
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
		if err == nil && same && l.current() {
			if err = l.checkCompanions(); err == nil {
				return l, nil
			}
		}
		// If it is not the same, the writer that was waited for has put another file in its place.
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

// flock waits for the lock of the open file. The file stays open meanwhile: closing it would end the locks of SQLite that
// this process has on it.
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

// tryLock takes the lock if no other process has it. Where there are no locks it passes for having it.
func (l *writeLock) tryLock() (err error) {
	l.held, err = filelock.Take(l.file)
	return err
}

// current reports, of the lock of a file that is not there yet, whether others see the same lock: who had it before has
// removed it.
func (l *writeLock) current() bool {
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

// newLockPath is what is locked while a database is made where there is none. The name is that of a temporary file of
// package atomicfs: what a killed writer leaves is removed by the next one.
func newLockPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".bindery-new")
}

// checkCompanions refuses a database with a log or a journal that has content: it belongs to the file that is there, and
// would be applied to the one that takes its place.
func (l *writeLock) checkCompanions() error {
	companions, err := findCompanions(l.path)
	if err != nil {
		return err
	}
	if len(companions) > 0 {
		return fmt.Errorf("%w: a file %s%s is beside it, which would be applied to the new database; a program that opens the old one for writing ends it", ErrUnsupported, l.path, companions[0])
	}
	return nil
}

// keepOut takes SQLite's lock of the database, so that no process writes into the file that is about to be replaced. What is
// there may also be no database, or one with a log: no process is writing to that, as the log has no content.
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
		fmt.Sprintf("_busy_timeout=%d", max(1, l.wait.Milliseconds())), "_pragma=trusted_schema(0)", "_pragma=mmap_size(0)")
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

// unchanged checks, right before the new file gets its name, that it has not been replaced by another file.
func (l *writeLock) unchanged(path string) error {
	same, err := sameFile(path, l.stat)
	if err == nil && !same {
		err = fmt.Errorf("%w: the file was replaced meanwhile", ErrLocked)
	}
	return errors.Join(err, l.checkCompanions())
}

// release gives up the locks.
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
		if l.stat == nil && l.held && l.current() {
			errs = append(errs, os.Remove(newLockPath(l.path)))
		}
		errs = append(errs, l.file.Close())
		l.file = nil
	}
	return errors.Join(errs...)
}
