package atomicfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace makes the directory durable and puts it in place of an existing target directory, which it then removes. The
// caller must have synced the files in it. Where the system can swap two directories, the target exists at all times;
// elsewhere a crash between two renames leaves no target. If Replace fails, the caller must call Abort, which restores
// the previous state.
func (d *Dir) Replace() error {
	if d.into != "" {
		return d.Commit()
	}
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
	if err := Exchange(d.path, d.target); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(d.target)); err != nil {
		return errors.Join(err, Exchange(d.path, d.target))
	}
	old := d.path
	d.path = ""
	// The new directory is in place. Parts of the old one that cannot be removed now are removed by the next writer.
	_ = os.RemoveAll(old)
	return d.lock.Close()
}

// exchangeByRenames swaps two directories with three renames.
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
