// Package atomicfs makes files and directories appear completely or not at all: it writes them under a temporary name
// in the same directory, syncs them and renames them.
//
// The temporary name contains the target's (".NAME.bindery-RANDOM"), and its writer holds a lock on it. The next writer
// of the same target recognises what a killed writer left behind by the missing lock, and removes it.
package atomicfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const infix = ".bindery-"

// tempName returns a new temporary name in the directory of target.
func tempName(target string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, according to its documentation
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+infix+hex.EncodeToString(b[:]))
}

// createLocked removes the leftovers of dead writers of target, as far as list finds them, and calls create. It holds a
// lock of the directory meanwhile: without it a file that was just created and is not locked yet would be taken for a
// leftover. If the lock cannot be taken, it removes nothing.
func createLocked(target string, list func(dir string) ([]fs.DirEntry, error), create func() error) error {
	dir, err := os.Open(filepath.Dir(target))
	if err != nil {
		return err
	}
	if lock(dir) {
		err = removeStale(target, list)
	}
	if err == nil {
		err = create()
	}
	return errors.Join(err, dir.Close())
}

// removeStale removes temporary files and directories that dead writers of target left behind.
func removeStale(target string, list func(dir string) ([]fs.DirEntry, error)) error {
	dir := filepath.Dir(target)
	entries, err := list(dir)
	if err != nil {
		return err
	}
	prefix := "." + filepath.Base(target) + infix
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() && !e.IsDir() {
			continue // writers create nothing else, and opening a FIFO would block
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.Open(path)
		if err != nil {
			continue // removed meanwhile, or not readable for this user
		}
		if tryLock(f) {
			err = os.RemoveAll(path)
		}
		if errors.Is(err, fs.ErrPermission) {
			err = nil // in a shared directory such as /tmp other users' leftovers cannot be removed
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget refuses to write through a symbolic link: its target is not what the user named.
func checkTarget(target string) error {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return &fs.PathError{Op: "write", Path: target, Err: errors.New("is a symbolic link, which is not followed")}
	}
	return nil
}

// Dir is a directory being written.
type Dir struct {
	path   string
	target string
	into   string // an existing empty directory into which the content moves; empty for one that path becomes
	lock   *os.File
	made   []string // parent directories that were created, outermost first
}

// NewDir begins a directory that will be called target. Missing parent directories are created; Abort removes them
// again. An empty directory that exists stays: Commit and Replace fill it, so that it keeps its owner, its mode, and what is
// mounted on it, and Path is a directory in it.
func NewDir(target string) (*Dir, error) {
	target = filepath.Clean(target)
	if !canBeFilled(target) {
		return newDir(target)
	}
	d, err := newDir(staged(target))
	if err == nil {
		d.into = target
	}
	return d, err
}

// staged is where the content of a directory is written before it moves there.
func staged(dir string) string { return filepath.Join(dir, "bindery-tree") }

// canBeFilled tells whether there is a directory with nothing but what a killed writer has left.
func canBeFilled(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && Sweep(staged(dir)) == nil && checkEmptyBut(dir, lostFound) == nil
}

// newDir begins a directory beside its target.
func newDir(target string) (_ *Dir, err error) {
	d := &Dir{path: tempName(target), target: target}
	defer func() {
		if err != nil {
			d.removeMade()
		}
	}()
	for dir := filepath.Dir(target); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		d.made = slices.Insert(d.made, 0, dir)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return nil, err
	}
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	err = createLocked(target, os.ReadDir, func() (err error) {
		if err := os.Mkdir(d.path, 0o777); err != nil {
			return err
		}
		if d.lock, err = os.Open(d.path); err != nil {
			return errors.Join(err, os.Remove(d.path))
		}
		tryLock(d.lock)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// lostFound is a directory that file systems have in their root: a new volume has nothing but it.
const lostFound = "lost+found"

// Path is the temporary path under which to write the directory's content.
func (d *Dir) Path() string { return d.path }

// Commit makes the directory durable and puts it in place of target, which must not exist or be an empty directory. The
// caller must have synced the files in it. If Commit fails, the caller must call Abort, which restores the previous
// state.
func (d *Dir) Commit() error {
	if err := SyncDir(d.path); err != nil {
		return err
	}
	if d.into != "" {
		return d.commitInto()
	}
	for _, dir := range d.made {
		if err := SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	old, statErr := os.Lstat(d.target)
	if err := os.Rename(d.path, d.target); err != nil {
		// Some systems do not rename onto an empty directory.
		if os.Remove(d.target) != nil {
			if now := checkEmptyBut(d.target); errors.Is(now, ErrNotEmpty) {
				err = occupied{now, err}
			}
			return err
		}
		if err := os.Rename(d.path, d.target); err != nil {
			return err
		}
	}
	if err := SyncDir(filepath.Dir(d.target)); err != nil {
		err = errors.Join(err, os.Rename(d.target, d.path))
		if statErr == nil {
			err = errors.Join(err, os.Mkdir(d.target, old.Mode().Perm()))
		}
		return err
	}
	d.path = ""
	return d.lock.Close()
}

// occupied is the error of a rename onto a directory in which something is: it says what, and is that of the system too.
type occupied struct{ now, rename error }

func (e occupied) Error() string   { return "something else is there: " + e.now.Error() }
func (e occupied) Unwrap() []error { return []error{e.now, e.rename} }

// commitInto moves the content into the directory that exists, unless something else has come there.
func (d *Dir) commitInto() error {
	if err := checkEmptyBut(d.into, lostFound, filepath.Base(d.path)); err != nil {
		return fmt.Errorf("something else was written there meanwhile: %w", err)
	}
	if err := moveEntries(d.path, d.into); err != nil {
		return err
	}
	old := d.path
	d.path = ""
	// The content is in place. The empty directory that cannot be removed now is removed by the next writer.
	_ = os.Remove(old)
	return d.lock.Close()
}

// Abort removes the directory. It does nothing after a successful Commit or an Abort.
func (d *Dir) Abort() error {
	if d.path == "" {
		return nil
	}
	first := os.RemoveAll(d.path)
	err := d.lock.Close()
	if first != nil {
		// RemoveAll can fail while descriptors are used up; closing the lock has freed one.
		err = errors.Join(err, os.RemoveAll(d.path))
	}
	d.removeMade()
	d.path = ""
	return err
}

// removeMade removes the parent directories that were created, as far as they are empty.
func (d *Dir) removeMade() {
	for _, dir := range slices.Backward(d.made) {
		_ = os.Remove(dir)
	}
}

// File is a file being written. It is an [io.Writer].
type File struct {
	*os.File
	target string
	done   bool
}

// NewFile begins a file that will be called target, with the given permissions before umask.
func NewFile(target string, perm fs.FileMode) (*File, error) {
	return newFile(target, perm, os.ReadDir)
}

// Batch writes many files, most of them in one directory. It lists the directory once to find leftovers of dead
// writers: listing it for each file would take quadratic time. It is safe for concurrent use.
type Batch struct {
	mu   sync.Mutex
	dir  string
	left []fs.DirEntry // temporary files in dir
}

// NewFile works like the function [NewFile].
func (b *Batch) NewFile(target string, perm fs.FileMode) (*File, error) {
	return newFile(target, perm, b.list)
}

func (b *Batch) list(dir string) ([]fs.DirEntry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir != dir {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		b.dir = dir
		b.left = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.Contains(e.Name(), infix) })
	}
	return b.left, nil
}

func newFile(target string, perm fs.FileMode, list func(dir string) ([]fs.DirEntry, error)) (*File, error) {
	target = filepath.Clean(target)
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "write", Path: target, Err: errors.New("exists and is not a regular file")}
	}
	f := &File{target: target}
	err := createLocked(target, list, func() (err error) {
		f.File, err = os.OpenFile(tempName(target), os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		if err == nil {
			tryLock(f.File)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Commit makes the file durable and renames it to target, replacing the previous file. If Commit fails, the caller must
// call Abort, which restores the previous state.
func (f *File) Commit() error {
	kept, err := f.swap()
	if err != nil {
		return err
	}
	return f.forget(kept)
}

// CommitNew is like Commit, for a file that must not exist: if something has the name by now, even of a moment ago, the
// error is [fs.ErrExist] and nothing has changed.
func (f *File) CommitNew() error {
	kept, err := f.create()
	if err != nil {
		return err
	}
	return f.forget(kept)
}

// create is like swap, for a file that must not exist.
func (f *File) create() (old, error) {
	if err := f.Sync(); err != nil {
		return old{}, err
	}
	if err := MoveNew(f.Name(), f.target); err != nil {
		return old{}, err
	}
	o := old{linked: fs.ErrNotExist}
	if err := SyncDir(filepath.Dir(f.target)); err != nil {
		return old{}, errors.Join(err, f.swapBack(o))
	}
	return o, nil
}

// MoveNew renames a file to a name that must not exist: of several that do it at once one succeeds, and for the others
// the error is [fs.ErrExist]. A rename alone replaces what appeared since it was looked for.
func MoveNew(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		if err = os.Remove(from); err != nil {
			err = errors.Join(err, os.Remove(to))
		}
		return err
	case errors.Is(err, fs.ErrExist):
		return &fs.PathError{Op: "write", Path: to, Err: fs.ErrExist}
	}
	// There are no hard links here: an empty file takes the name, and is replaced.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(from, to)); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// old is the file that was replaced.
type old struct {
	name   string // its second hard link
	linked error  // nil if the link exists; fs.ErrNotExist if there was no file
}

// swap replaces the old file. It first gives the old file a second hard link, so that [File.swapBack] can restore it.
// On file systems without hard links a later failure leaves the new file.
func (f *File) swap() (old, error) {
	if err := f.Sync(); err != nil {
		return old{}, err
	}
	o := old{name: tempName(f.target)}
	o.linked = os.Link(f.target, o.name)
	if err := os.Rename(f.Name(), f.target); err != nil {
		if o.linked == nil {
			err = errors.Join(err, os.Remove(o.name))
		}
		return old{}, err
	}
	if err := SyncDir(filepath.Dir(f.target)); err != nil {
		return old{}, errors.Join(err, f.swapBack(o))
	}
	return o, nil
}

// swapBack restores the old file; Abort then removes the new one.
func (f *File) swapBack(o old) error {
	switch {
	case o.linked == nil:
		return errors.Join(os.Rename(f.target, f.Name()), os.Rename(o.name, f.target))
	case errors.Is(o.linked, fs.ErrNotExist):
		return os.Rename(f.target, f.Name())
	}
	f.done = true
	return f.Close()
}

func (f *File) forget(o old) error {
	f.done = true
	err := f.Close()
	if o.linked == nil {
		// Another writer may have removed it as a leftover.
		if rerr := os.Remove(o.name); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// Abort removes the file. It does nothing after a successful Commit.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	// While it is locked no other writer takes it for a leftover.
	first := os.Remove(f.Name())
	err := f.Close()
	if first != nil && !errors.Is(first, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(f.Name())) // Windows removes no open file
	}
	return err
}

// CheckFile returns the error with which [WriteFile] would fail immediately, if any. Long work whose result goes to the
// file can be refused before it starts. It leaves nothing behind.
func CheckFile(target string) error {
	f, err := NewFile(target, 0o600)
	if err != nil {
		return err
	}
	return f.Abort()
}

// Sweep removes leftovers of dead writers of target. Every writer does this first; callers that have nothing to write
// use Sweep.
func Sweep(target string) error {
	return createLocked(filepath.Clean(target), os.ReadDir, func() error { return nil })
}

// WriteFile writes a whole file atomically.
func WriteFile(target string, data []byte, perm fs.FileMode) error {
	return writeFile(target, data, perm, (*File).Commit)
}

// WriteNewFile writes a file that must not exist, as [File.CommitNew] says.
func WriteNewFile(target string, data []byte, perm fs.FileMode) error {
	return writeFile(target, data, perm, (*File).CommitNew)
}

func writeFile(target string, data []byte, perm fs.FileMode, commit func(*File) error) (err error) {
	f, err := NewFile(target, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return commit(f)
}
