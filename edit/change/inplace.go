package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/sqlite"
)

// ErrNoCatalog is returned for a path with neither a catalog directory nor an index database.
var ErrNoCatalog = errors.New("neither a catalog directory nor an index database")

// InPlace edits the catalog at a path: a database file or a catalog directory. The edit is applied completely or not at
// all. Symbolic links are followed. Concurrent edits of the same catalog wait for one another.
//
// Errors of the edit's function are returned unchanged; others are those of sqlite.Replace or of reading the files.
func (e Edit) InPlace(ctx context.Context, path string, o Options) (*Result, error) {
	target, kind, err := locate(path, o)
	if err != nil {
		return nil, err
	}
	if kind == Database {
		return database(ctx, target, e, o)
	}
	return directory(ctx, path, e, o)
}

// locate returns the kind of the catalog at a path and its path with links resolved.
func locate(path string, o Options) (string, Kind, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		if err := regularfile.CheckSeekable(path, info); err != nil {
			return "", "", err
		}
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && o.Create {
		switch info, lerr := os.Lstat(path); {
		case lerr != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			return "", "", fmt.Errorf("%s: the link leads nowhere: %w", path, err)
		default:
			return locate(path, o) // another edit has created it meanwhile
		}
		if o.New == Directory {
			return path, Directory, nil
		}
		return path, Database, nil
	}
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return "", "", err
	case info.IsDir():
		return target, Directory, nil
	case !info.Mode().IsRegular():
		return "", "", &fs.PathError{Op: "edit", Path: path, Err: ErrNoCatalog}
	case info.Size() == 0 && o.Create:
		return target, Database, nil
	}
	f, err := os.Open(target)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	if is, err := sqlite.IsDatabase(f); err != nil || !is {
		return "", "", &fs.PathError{Op: "edit", Path: path, Err: ErrNoCatalog}
	}
	return target, Database, nil
}
