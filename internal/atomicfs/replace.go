package atomicfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace makes the directory durable under its target name, in place of whatever directory is there, which is removed
// then. The files in it must have been synced by who wrote them. Where the system can swap two directories there is
// always one of them under the name; elsewhere a crash between two renames leaves none. After an error Abort must be
// called; then there is what was there before.
func (d *Dir) Replace() error {
	info, err := os.Lstat(d.target)
	if errors.Is(err, fs.ErrNotExist) {
		return d.Commit()
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "replace", Path: d.target, Err: errors.New("is not a directory")}
	}
	if err := SyncDir(d.path); err != nil {
		return err
	}
	if err := exchange(d.path, d.target); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(d.target)); err != nil {
		return errors.Join(err, exchange(d.path, d.target))
	}
	old := d.path
	d.path = ""
	// The new directory is there, for good. What of the old one cannot be removed now is removed by the next writer.
	_ = os.RemoveAll(old)
	return d.lock.Close()
}

// exchangeByRenames swaps two directories in three renames.
func exchangeByRenames(a, b string) error {
	aside := tempName(b)
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(aside, b))
	}
	if err := os.Rename(aside, a); err != nil {
		return errors.Join(err, os.Rename(b, a), os.Rename(aside, b))
	}
	return nil
}
