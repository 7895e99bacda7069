package filetx

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// ErrChanged is returned if another program changed a file after the caller read it.
var ErrChanged = errors.New("changed while it was being edited")

// Hooks are for tests.
type Hooks struct {
	// Step is called at each step of a transaction.
	Step func(name string)
	// NoLinks simulates a file system without hard links.
	NoLinks bool
}

// Tx is one transaction. It is not safe for concurrent use.
type Tx struct {
	root   *os.Root
	stage  string // name of the staging directory
	staged int    // number of staged files
	hooks  Hooks
	keep   bool // leave the staging directory to Recover
}

// Change replaces, creates or removes one file. Names are slash-separated and relative to the directory.
type Change struct {
	Name   string
	Staged string      // path of the new file, as Create returns it; empty to remove the file
	Old    fs.FileInfo // the file that has the name; nil if there is none
	New    fs.FileInfo // the new file
}

// Begin creates the staging directory.
func Begin(root *os.Root, h Hooks) (*Tx, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, according to its documentation
	tx := &Tx{root: root, stage: Prefix + hex.EncodeToString(random[:]), hooks: h}
	if err := root.Mkdir(tx.stage, 0o755); err != nil {
		return nil, err
	}
	tx.step("stage")
	if err := tx.write(ignoreFile, []byte(ignoreText)); err != nil {
		return nil, errors.Join(err, tx.Close())
	}
	return tx, nil
}

// Create creates a staged file. The caller must write, sync and close it before Commit.
func (tx *Tx) Create() (f *os.File, staged string, err error) {
	staged = tx.path(fmt.Sprintf("new-%d", tx.staged))
	tx.staged++
	f, err = tx.root.OpenFile(staged, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	return f, staged, err
}

// Commit makes the changes, at least one. Missing directories are created and those that become empty are removed.
// After an error, or if ctx ends, every name has its old file. There is one exception: without hard links, a single
// file stays replaced if syncing its directory fails. The error is [ErrChanged] if an old file is no longer the one in
// Change.Old.
func (tx *Tx) Commit(ctx context.Context, changes []Change) (err error) {
	j := newJournal(tx.root, changes)
	withJournal := len(changes) > 1 || len(j.Made) > 0 || changes[0].Staged == ""
	if withJournal {
		if err := tx.writeJournal(j); err != nil {
			return err
		}
		tx.step("journal")
	}
	defer func() {
		if err == nil {
			return
		}
		if uerr := j.undo(tx.root, tx.stage); uerr != nil {
			tx.keep = true
			if !withJournal {
				uerr = errors.Join(uerr, tx.writeJournal(j))
			}
			uerr = fmt.Errorf("the changes could not be taken back; the next edit tries again: %w", uerr)
			err = errors.Join(err, uerr)
		}
	}()
	for _, dir := range j.Made {
		if err := tx.root.Mkdir(dir, 0o777); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := tx.apply(c, backupPath(tx.stage, i), withJournal); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		tx.step("move")
	}
	for _, dir := range j.dirs() {
		if err := syncDir(tx.root, dir); err != nil {
			return err
		}
	}
	if withJournal {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := tx.markCommitted(); err != nil {
			return err
		}
		tx.step("committed")
	}
	tx.keep = j.removeEmptied(tx.root) != nil // if it fails, Recover tries again
	return nil
}

// apply makes one change. The old file first gets the name backup.
func (tx *Tx) apply(c Change, backup string, withJournal bool) error {
	if c.Old == nil {
		return tx.create(c.Staged, c.Name)
	}
	// With a second link to the old file, the name always refers to a file.
	linked := c.Staged != "" && tx.link(c.Name, backup) == nil
	if !linked {
		if !withJournal {
			if err := tx.checkUnchanged(c.Name, c.Old); err != nil {
				return err
			}
			return tx.root.Rename(c.Staged, c.Name)
		}
		if err := tx.root.Rename(c.Name, backup); err != nil {
			return err
		}
	}
	tx.step("backup")
	if err := tx.checkUnchanged(backup, c.Old); err != nil || c.Staged == "" {
		return err
	}
	if err := tx.root.Rename(c.Staged, c.Name); err != nil {
		return err
	}
	return tx.checkUnchanged(backup, c.Old) // a program that had the file open may have written to it
}

// create gives a staged file an unused name. Linking fails if the name was taken meanwhile.
func (tx *Tx) create(staged, name string) error {
	err := tx.link(staged, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return renameIfFree(tx.root, staged, name)
}

func (tx *Tx) link(from, to string) error {
	if tx.hooks.NoLinks {
		return errors.ErrUnsupported
	}
	return tx.root.Link(from, to)
}

func (tx *Tx) checkUnchanged(name string, old fs.FileInfo) error {
	now, err := tx.root.Lstat(name)
	if err == nil && !SameState(now, old) {
		err = ErrChanged
	}
	return err
}

// SameState reports whether two FileInfos describe the same unchanged file.
func SameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Close removes the staging directory, unless Recover needs it.
func (tx *Tx) Close() error {
	if tx.keep {
		return nil
	}
	return removeStage(tx.root, tx.stage)
}

// removeStage removes a staging directory. The ignore file is removed last, as it hides the others.
func removeStage(root *os.Root, stage string) error {
	entries, err := fs.ReadDir(root.FS(), stage)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != ignoreFile {
			errs = append(errs, root.RemoveAll(path.Join(stage, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return root.RemoveAll(stage)
}

func (tx *Tx) path(name string) string { return path.Join(tx.stage, name) }

func (tx *Tx) step(name string) {
	if tx.hooks.Step != nil {
		tx.hooks.Step(name)
	}
}

// write writes a file in the staging directory and syncs it.
func (tx *Tx) write(name string, data []byte) error {
	f, err := tx.root.OpenFile(tx.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// renameIfFree renames a file to an unused name. Another program could take the name between the check and the rename.
func renameIfFree(root *os.Root, from, to string) error {
	if _, err := root.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}, err)
	}
	return root.Rename(from, to)
}

// syncDir makes the entries of a directory durable. Its path may exceed the system's maximum length.
func syncDir(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(atomicfs.SyncOpenDir(f), f.Close())
}
