package layouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filelock"
)

// Commit puts what was prepared into its place. The output is the old one until a single rename makes it the new one.
func (out *Output) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var err error
	switch out.place.Format {
	case OCI:
		err = out.commitLayout(ctx)
	case Directory:
		err = out.commitDirectory(ctx)
	default:
		err = out.commitFile()
	}
	out.done = err == nil
	return err
}

// commitLayout renames a layout that did not exist, or merges into the one that does: perhaps only since this run began.
func (out *Output) commitLayout(ctx context.Context) error {
	dir := filepath.Clean(out.place.Path)
	staged := out.stage.Join(stagedLayout)
	for {
		info, err := LstatOutput(dir)
		if err != nil {
			return err
		}
		if info != nil {
			return mergeLayout(ctx, staged, dir)
		}
		// A rename cannot replace a layout that another run has put there meanwhile: that is not an empty directory.
		err = os.Rename(staged, dir)
		if err == nil {
			if err = atomicfs.SyncDir(filepath.Dir(dir)); err != nil {
				err = errors.Join(err, os.Rename(dir, staged))
			}
			return err
		}
		if !occupied(err) {
			return err
		}
	}
}

// occupied tells whether a rename failed because the target exists.
func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, errNotEmpty)
}

// commitFile renames the file over the old one.
func (out *Output) commitFile() error {
	path := filepath.Clean(out.place.Path)
	if err := out.check(); err != nil {
		return err
	}
	_, err := ReplaceFile(out.stage.Join(StagedFile), path, out.stage.Join("old"))
	return err
}

// ReplaceFile renames a file over another and brings that to the disk. Where the latter fails the old file comes back, if
// the file system could give it a second name meanwhile, which is kept. replaced tells whether the new file is there.
func ReplaceFile(staged, path, kept string) (replaced bool, err error) {
	linked := os.Link(path, kept)
	if err := os.Rename(staged, path); err != nil {
		return false, err
	}
	if err = atomicfs.SyncDir(filepath.Dir(path)); err == nil {
		return true, nil
	}
	var undone error
	switch {
	case linked == nil:
		undone = os.Rename(kept, path)
	case errors.Is(linked, fs.ErrNotExist):
		undone = os.Remove(path)
	default:
		return true, err
	}
	return undone != nil, errors.Join(err, undone)
}

// commitDirectory exchanges the directory with the old one.
func (out *Output) commitDirectory(ctx context.Context) error {
	dir := filepath.Clean(out.place.Path)
	lock, err := filelock.LockDir(ctx, filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := out.check(); err != nil {
		return err
	}
	staged := out.stage.Join(StagedFile)
	back := os.Rename
	err = os.Rename(staged, dir)
	if err != nil && occupied(err) {
		back = exchange
		err = exchange(staged, dir)
	}
	if err != nil {
		return fmt.Errorf("putting %s in place: %w", dir, err)
	}
	if err := atomicfs.SyncDir(filepath.Dir(dir)); err != nil {
		return errors.Join(err, back(dir, staged))
	}
	return nil
}

// exchangeByRenames puts a directory in the place of another in two steps, where the system has none that does it in
// one; the old directory goes back if the second step fails.
func exchangeByRenames(staged, dir string) error {
	old := staged + ".old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(staged, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return nil
}
