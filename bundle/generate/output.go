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
)

// ErrExists reports an existing file with other content that must not be replaced.
var ErrExists = fmt.Errorf("%w with other content", fs.ErrExist)

// file is one file that is to be written.
type file struct {
	path    string
	content []byte
}

// writeAll writes the files that are not there with this very content, and returns their paths. Either all are written
// or, on an error, everything is as it was. Without overwrite a file with other content is an error, [ErrExists], before
// anything is written; all such files are named.
func writeAll(ctx context.Context, files []file, overwrite bool) (written []string, err error) {
	var todo []atomicfs.Content
	var errs []error
	for _, f := range files {
		there, same, err := compare(f)
		switch {
		case err != nil:
			errs = append(errs, err)
		case same:
			// A run that was killed may have left something of this file. If it stays, that does no harm.
			_ = atomicfs.Sweep(f.path)
		case there && !overwrite:
			errs = append(errs, fmt.Errorf("%s: %w", f.path, ErrExists))
		default:
			todo = append(todo, atomicfs.Content{Path: f.path, Data: f.content, Perm: 0o644})
			written = append(written, f.path)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var made []string
	defer func() {
		if err != nil {
			for i := len(made) - 1; i >= 0; i-- {
				_ = os.Remove(made[i]) // it stays if another program has put something into it
			}
			written = nil
		}
	}()
	for _, f := range todo {
		if made, err = mkdir(filepath.Dir(f.Path), made); err != nil {
			return nil, err
		}
	}
	return written, atomicfs.WriteFiles(ctx, todo)
}

// compare looks at what is at the path of a file: whether something is, and whether that has the same content.
func compare(f file) (there, same bool, err error) {
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return true, false, err
	}
	if !info.Mode().IsRegular() {
		return true, false, fmt.Errorf("%s is there and is not a regular file", f.path)
	}
	if info.Size() != int64(len(f.content)) {
		return true, false, nil
	}
	text, err := os.ReadFile(f.path)
	return true, bytes.Equal(text, f.content), err
}

// mkdir makes a directory and those above it that are missing, and adds them to made.
func mkdir(dir string, made []string) ([]string, error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return made, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	if up := filepath.Dir(dir); up != dir {
		var err error
		if made, err = mkdir(up, made); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return made, err
	}
	return append(made, dir), nil
}
