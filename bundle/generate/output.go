package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// ErrExists is the error of a file that is there with other content and must not be replaced.
var ErrExists = fmt.Errorf("%w with other content", fs.ErrExist)

// file is one file that is to be written.
type file struct {
	path    string
	content []byte
}

// journal remembers what has been written, so that all of it can be taken back.
type journal struct {
	files []undo
	dirs  []string // that were made, outermost first
}

// undo is what a file was before; old is nil if it was not there.
type undo struct {
	path string
	old  []byte
	perm fs.FileMode
}

// writeAll writes the files that are not there with this very content, and returns their paths. Either all are written
// or, on an error, everything is as it was. Without overwrite a file with other content is an error, [ErrExists], before
// anything is written; all such files are named.
func writeAll(ctx context.Context, files []file, overwrite bool) (written []string, err error) {
	var todo []undo
	var contents [][]byte
	var errs []error
	for _, f := range files {
		old, same, err := compare(f)
		switch {
		case err != nil:
			errs = append(errs, err)
		case same:
		case old.old != nil && !overwrite:
			errs = append(errs, fmt.Errorf("%s: %w", f.path, ErrExists))
		default:
			todo = append(todo, old)
			contents = append(contents, f.content)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var j journal
	defer func() {
		if err != nil {
			err = errors.Join(err, j.takeBack())
		}
	}()
	for i, f := range todo {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if err := j.mkdir(filepath.Dir(f.path)); err != nil {
			return nil, err
		}
		if err := atomicfs.WriteFile(f.path, contents[i], f.perm); err != nil {
			return nil, err
		}
		j.files = append(j.files, f)
		written = append(written, f.path)
	}
	return written, nil
}

// compare looks at what is at the path of a file.
func compare(f file) (was undo, same bool, err error) {
	was = undo{path: f.path, perm: 0o644}
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return was, false, nil
	}
	if err != nil {
		return was, false, err
	}
	if !info.Mode().IsRegular() {
		return was, false, fmt.Errorf("%s is there and is not a regular file", f.path)
	}
	was.old = []byte{}
	if info.Size() > bundlefs.MaxFile {
		return was, false, fmt.Errorf("%s: %w: more than %d bytes", f.path, bundlefs.ErrLimit, bundlefs.MaxFile)
	}
	if was.old, err = os.ReadFile(f.path); err != nil {
		return was, false, err
	}
	was.perm = info.Mode().Perm()
	return was, bytes.Equal(was.old, f.content), nil
}

// mkdir makes a directory and those above it that are missing.
func (j *journal) mkdir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if up := filepath.Dir(dir); up != dir {
		if err := j.mkdir(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	j.dirs = append(j.dirs, dir)
	return nil
}

// takeBack undoes what was written, the last first.
func (j *journal) takeBack() error {
	var errs []error
	for i := len(j.files) - 1; i >= 0; i-- {
		f := j.files[i]
		if f.old == nil {
			errs = append(errs, os.Remove(f.path))
			continue
		}
		errs = append(errs, atomicfs.WriteFile(f.path, f.old, f.perm))
	}
	for i := len(j.dirs) - 1; i >= 0; i-- {
		_ = os.Remove(j.dirs[i]) // somebody else may be using it by now
	}
	return errors.Join(errs...)
}
