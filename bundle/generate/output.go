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
	"github.com/operator-bindery/bindery/internal/guard"
)

type file struct {
	path    string
	content []byte
}

// writeAll writes the files that do not exist with the same content and returns their paths. After an error nothing has
// changed. Without overwrite, existing files with other content are an error, [ErrExists], before anything is written;
// all of them are named.
func writeAll(ctx context.Context, files []file, overwrite bool) (written []string, err error) {
	for range 3 { // another run may write the same files just now
		if written, err = tryWriteAll(ctx, files, overwrite); !errors.Is(err, fs.ErrExist) || errors.Is(err, ErrExists) {
			break
		}
	}
	return written, err
}

func tryWriteAll(ctx context.Context, files []file, overwrite bool) (written []string, err error) {
	var todo []atomicfs.Content
	var errs []error
	for _, f := range files {
		there, same, err := compare(f)
		switch {
		case err != nil:
			errs = append(errs, err)
		case same:
			// A killed run may have left a temporary file. If it cannot be removed, that does no harm.
			_ = atomicfs.Sweep(f.path)
		case there && !overwrite:
			errs = append(errs, fmt.Errorf("%s: %w", f.path, ErrExists))
		default:
			todo = append(todo, atomicfs.Content{Path: f.path, Data: f.content, Perm: 0o644, New: !overwrite})
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
				_ = os.Remove(made[i]) // fails if another program has put something into it
			}
			written = nil
		}
	}()
	defer guard.Recover(&err)
	for _, f := range todo {
		if made, err = mkdir(filepath.Dir(f.Path), made); err != nil {
			return nil, err
		}
	}
	return written, atomicfs.WriteFiles(ctx, todo)
}

// compare reports whether a file exists at the path, and whether it has the same content.
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

// mkdir creates a directory with its missing parents and appends them to made.
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
