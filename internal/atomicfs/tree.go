package atomicfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/internal/guard"
)

// WriteTree writes the files and directories of fsys into the directory target with modes 0644 and 0755, whatever their
// modes are in fsys. Other kinds of files are refused. A target that does not exist appears completely or not at all;
// its parents are created. Into an existing target the entries of fsys are moved one after the other, each complete; if
// one of them already exists, the error is [fs.ErrExist] and nothing is written.
func WriteTree(ctx context.Context, target string, fsys fs.FS) (err error) {
	target = filepath.Clean(target)
	if err := checkTarget(target); err != nil {
		return err
	}
	into := target
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "write", Path: target, Err: errors.New("exists and is not a directory")}
	default:
		into = staged(target)
	}
	if into != target {
		if err := checkFree(target, fsys); err != nil {
			return err
		}
	}
	d, err := newDir(into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	if err := fill(ctx, d.Path(), fsys); err != nil {
		return err
	}
	if into == target {
		if err := os.Chmod(d.Path(), 0o755); err != nil {
			return err
		}
		return d.Commit()
	}
	return moveEntries(d.Path(), target)
}

// checkFree refuses a directory that already has an entry of fsys.
func checkFree(target string, fsys fs.FS) error {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(target, e.Name())
		if _, err := os.Lstat(path); err == nil {
			errs = append(errs, &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist})
		}
	}
	return errors.Join(errs...)
}

// fill writes the content of a new directory and syncs it.
func fill(ctx context.Context, dir string, fsys fs.FS) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var dirs []string
	err = fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil || name == "." {
			return err
		}
		local, err := filepath.Localize(name)
		if err != nil {
			return fmt.Errorf("%.200q: %w", name, err)
		}
		switch {
		case e.IsDir():
			dirs = append(dirs, local)
			return errors.Join(root.Mkdir(local, 0o755), root.Chmod(local, 0o755))
		case e.Type().IsRegular():
			return writeEntry(root, local, fsys, name)
		}
		return fmt.Errorf("%.200q is neither a regular file nor a directory", name)
	})
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := SyncDir(filepath.Join(dir, dirs[i])); err != nil {
			return err
		}
	}
	return SyncDir(dir)
}

// writeEntry writes one file, which must not exist.
func writeEntry(root *os.Root, local string, fsys fs.FS, name string) (err error) {
	from, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(0o644)
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// moveEntries moves the entries of one directory into another. After an error none has moved.
func moveEntries(from, to string) (err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		if err != nil {
			for _, name := range moved {
				err = errors.Join(err, os.Rename(filepath.Join(to, name), filepath.Join(from, name)))
			}
		}
	}()
	defer guard.Recover(&err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), infix) {
			return fmt.Errorf("%.200q: the name is one of temporary files, which the next writer would remove",
				e.Name())
		}
		path := filepath.Join(to, e.Name())
		if _, err := os.Lstat(path); err == nil { // it appeared after checkFree
			return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
		}
		move := MoveNew
		if e.IsDir() {
			move = os.Rename // no directory is renamed over one that has something in it
		}
		if err := move(filepath.Join(from, e.Name()), path); err != nil {
			return err
		}
		moved = append(moved, e.Name())
	}
	return SyncDir(to)
}
