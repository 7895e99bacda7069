package layouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filelock"
)

// Commit puts the staged image in its place, by a single rename. Before that the old output is unchanged.
func (out *Output) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if out.within && len(out.writer.now().Entries) == 0 {
		return nil // nothing is added
	}
	var err error
	switch {
	case out.place.Transport == transport.OCI:
		err = out.commitLayout(ctx)
	case out.within:
		err = out.commitWithin(ctx)
	case out.place.Transport == transport.Directory:
		err = out.commitDirectory(ctx)
	default:
		err = out.commitFile()
	}
	out.done = err == nil
	return err
}

// commitLayout renames the staged layout, or merges it into a layout that exists, perhaps only since this run began.
func (out *Output) commitLayout(ctx context.Context) error {
	dir := filepath.Clean(out.place.Path)
	staged := out.stage.Join(stagedLayout)
	for {
		info, err := LstatOutput(dir)
		if err != nil {
			return err
		}
		if info != nil {
			return out.writer.merge(ctx, dir)
		}
		// The rename fails if another run has written the layout meanwhile: that directory is not empty.
		err = os.Rename(staged, dir)
		if err == nil {
			if err = atomicfs.SyncDir(filepath.Dir(dir)); err != nil {
				err = errors.Join(err, os.Rename(dir, staged))
			}
			return err
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// commitWithin adds the staged layout to the archive at the place, which is rewritten as a whole: another run may
// have replaced it since this one began. The lock of its directory keeps out other runs.
func (out *Output) commitWithin(ctx context.Context) error {
	lock, err := filelock.LockDir(ctx, filepath.Dir(filepath.Clean(out.place.Path)))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	whole := out.stage.Join("whole")
	if err := unpackLayout(ctx, out.place.Path, whole, out.writer.limits, out.writer.temp); err != nil {
		return err
	}
	if err := out.writer.merge(ctx, whole); err != nil {
		return err
	}
	if err := archiveLayout(ctx, whole, out.stage.Join(StagedFile)); err != nil {
		return err
	}
	if err := out.sync(); err != nil {
		return err
	}
	return out.commitFile()
}

// commitFile renames the staged file over the old one.
func (out *Output) commitFile() error {
	path := filepath.Clean(out.place.Path)
	if err := out.check(); err != nil {
		return err
	}
	_, err := ReplaceFile(out.stage.Join(StagedFile), path, out.stage.Join("old"))
	return err
}

// ReplaceFile renames a file over another and synchronises the directory. If that fails it restores the old file,
// provided that the file system could link it to the name kept. replaced tells whether the new file is in place.
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

// commitDirectory exchanges the staged directory with the old one.
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
	if errors.Is(err, fs.ErrExist) {
		back = atomicfs.Exchange
		err = atomicfs.Exchange(staged, dir)
	}
	if err != nil {
		return fmt.Errorf("putting %s in place: %w", dir, err)
	}
	if err := atomicfs.SyncDir(filepath.Dir(dir)); err != nil {
		return errors.Join(err, back(dir, staged))
	}
	return nil
}
