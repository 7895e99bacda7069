// Package atomicfs makes files and directories appear whole or not at all: they are written under a temporary name
// beside the target, synced, and renamed.
//
// A temporary name says whose it is (".NAME.bindery-RANDOM"), and is locked while its writer lives. What a killed
// writer left is therefore recognised, and removed by the next writer of the same target.
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

// tempName returns a fresh temporary name beside target.
func tempName(target string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+infix+hex.EncodeToString(b[:]))
}

// begin removes what dead writers of target have left, among what list finds in its directory, and calls create. Both happen under a lock of the directory, or
// else a file between its creation and its own lock would pass for dead. Who cannot get the lock removes nothing.
func begin(target string, list func(dir string) ([]fs.DirEntry, error), create func() error) error {
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

// removeStale removes the temporary files and directories that dead writers of target have left.
func removeStale(target string, list func(dir string) ([]fs.DirEntry, error)) error {
	dir := filepath.Dir(target)
	entries, err := list(dir)
	if err != nil {
		return err
	}
	prefix := "." + filepath.Base(target) + infix
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() && !e.IsDir() {
			continue // the latter is nothing that a writer makes, and a FIFO would not let itself be opened
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.Open(path)
		if err != nil {
			continue // gone already, or not ours to open
		}
		if tryLock(f) {
			err = os.RemoveAll(path)
		}
		if errors.Is(err, fs.ErrPermission) {
			err = nil // what somebody else has left in a directory of all is theirs to remove
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget refuses to write through a symbolic link: what it points to is not what the user named.
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

// Dir is a directory in the making.
type Dir struct {
	path   string
	target string
	lock   *os.File
	made   []string // directories that were missing above target, outermost first
}

// NewDir begins a directory that will be called target. The directories above target are made if they are missing, and
// removed again by Abort.
func NewDir(target string) (_ *Dir, err error) {
	target = filepath.Clean(target)
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
	err = begin(target, os.ReadDir, func() (err error) {
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

// Path is where to write the directory's content.
func (d *Dir) Path() string { return d.path }

// Commit makes the directory durable under its target name, in place of an empty directory or of nothing. The files in
// it must have been synced by who wrote them. After an error of Commit, Abort must be called; then there is what was
// there before.
func (d *Dir) Commit() error {
	if err := SyncDir(d.path); err != nil {
		return err
	}
	for _, dir := range d.made {
		if err := SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	old, statErr := os.Lstat(d.target)
	if err := os.Rename(d.path, d.target); err != nil {
		// Some systems do not rename over an empty directory.
		if os.Remove(d.target) != nil {
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

// Abort removes the directory. It does nothing after a successful Commit or an Abort.
func (d *Dir) Abort() error {
	if d.path == "" {
		return nil
	}
	first := os.RemoveAll(d.path)
	err := d.lock.Close()
	if first != nil {
		// Where descriptors are short, there is one more now.
		err = errors.Join(err, os.RemoveAll(d.path))
	}
	d.removeMade()
	d.path = ""
	return err
}

// removeMade removes the directories that were made above the target, as far as nothing else is in them.
func (d *Dir) removeMade() {
	for _, dir := range slices.Backward(d.made) {
		_ = os.Remove(dir)
	}
}

// File is a file in the making. It is an [io.Writer].
type File struct {
	*os.File
	target string
	done   bool
}

// NewFile begins a file that will be called target, with the given permissions before umask.
func NewFile(target string, perm fs.FileMode) (*File, error) {
	return newFile(target, perm, os.ReadDir)
}

// Batch makes many files, of which most are in one directory. It lists a directory once, to find what dead writers have left of
// any of them: listing it for each file takes time that grows with the square of their number. It is safe for concurrent use.
type Batch struct {
	mu   sync.Mutex
	dir  string
	left []fs.DirEntry // temporary files in dir
}

// NewFile is the function [NewFile].
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
	err := begin(target, list, func() (err error) {
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

// Commit makes the file durable under its target name, in place of the file that was there. After an error of Commit,
// Abort must be called; then there is what was there before.
func (f *File) Commit() error {
	kept, err := f.swap()
	if err != nil {
		return err
	}
	return f.forget(kept)
}

// old is the file that another one has replaced.
type old struct {
	name   string // its second name
	linked error  // nil if it has one; fs.ErrNotExist if there was no file
}

// swap puts the file in the place of the old one, which keeps a second name in case that the new one has to give way again.
// Not every file system has those: there a failure after the rename leaves the new file.
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

// swapBack undoes swap: Abort removes the new file then.
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

// forget ends what swap began.
func (f *File) forget(o old) error {
	f.done = true
	err := f.Close()
	if o.linked == nil {
		// Another writer may have removed it, as what a dead one has left.
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
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CheckFile returns the error with which [WriteFile] would fail at once, if any: work whose account cannot be written
// need not begin. It leaves nothing behind.
func CheckFile(target string) error {
	f, err := NewFile(target, 0o600)
	if err != nil {
		return err
	}
	return f.Abort()
}

// Sweep removes what dead writers of target have left beside it. Every writer does that first; this is for those who find
// that there is nothing to write.
func Sweep(target string) error {
	return begin(filepath.Clean(target), os.ReadDir, func() error { return nil })
}

// WriteFile writes a whole file, atomically.
func WriteFile(target string, data []byte, perm fs.FileMode) (err error) {
	f, err := NewFile(target, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return f.Commit()
}
