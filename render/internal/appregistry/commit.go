package appregistry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// plan lists the changes to an existing folder.
type plan struct {
	// moves are the new directories, relative to the staging directory and to the folder.
	moves []string
	// files are the package manifests with a new content.
	files []atomicfs.Content
}

// plan compares the written packages with those in the folder.
func (w *Writer) plan() (plan, error) {
	var p plan
	var problems []error
	for _, name := range w.packages() {
		at := filepath.Join(w.folder, name)
		there, err := isDirectory(at)
		if err != nil {
			return p, err
		}
		if !there {
			p.moves = append(p.moves, name)
			continue
		}
		entries, err := os.ReadDir(filepath.Join(w.stage.Path(), name))
		if err != nil {
			return p, err
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			version := filepath.Join(name, e.Name())
			there, err := isDirectory(filepath.Join(w.folder, version))
			if err != nil {
				return p, err
			}
			if !there {
				p.moves = append(p.moves, version)
				continue
			}
			same, err := sameTree(filepath.Join(w.stage.Path(), version), filepath.Join(w.folder, version))
			if err != nil {
				return p, err
			}
			if !same {
				problems = append(problems, &fs.PathError{Op: "write", Path: filepath.Join(w.folder, version),
					Err: fmt.Errorf("%w with other files than the bundle's: remove it, or name another folder",
						fs.ErrExist)})
			}
		}
		text := w.manifests[name]
		path := filepath.Join(at, ManifestName)
		if text == nil {
			continue
		}
		same, err := hasText(path, text)
		if err != nil {
			return p, err
		}
		if !same {
			p.files = append(p.files, atomicfs.Content{Path: path, Data: text, Perm: 0o666})
		}
	}
	return p, errors.Join(problems...)
}

// hasText reports whether a file exists with exactly that text. Anything but a regular file, including a symbolic link,
// is an error.
func hasText(path string, text []byte) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, &fs.PathError{Op: "write", Path: path, Err: errors.New("exists and is not a regular file")}
	case info.Size() != int64(len(text)):
		return false, nil
	}
	old, err := os.ReadFile(path)
	return bytes.Equal(old, text), err
}

// isDirectory reports whether a directory exists. Anything else, including a symbolic link, is an error.
func isDirectory(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, &fs.PathError{Op: "write", Path: path, Err: errors.New("exists and is not a directory")}
	}
	return true, nil
}

// sameTree reports whether two directories have the same files.
func sameTree(a, b string) (bool, error) {
	left, err := os.ReadDir(a)
	if err != nil {
		return false, err
	}
	right, err := os.ReadDir(b)
	if err != nil {
		return false, err
	}
	if len(left) != len(right) {
		return false, nil
	}
	for i, e := range left {
		if e.Name() != right[i].Name() || e.Type() != right[i].Type() {
			return false, nil
		}
		x, y := filepath.Join(a, e.Name()), filepath.Join(b, e.Name())
		same := false
		if e.IsDir() {
			same, err = sameTree(x, y)
		} else {
			same, err = sameFile(x, y)
		}
		if !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameFile reports whether two regular files have the same content; the first is in the staging directory.
func sameFile(a, b string) (bool, error) {
	left, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	right, err := os.Stat(b)
	if err != nil || left.Size() != right.Size() {
		return false, err
	}
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	return bytes.Equal(x, y), err
}

// carry moves the directories to the folder and then replaces the package manifests. After an error the moved
// directories are moved back.
func (w *Writer) carry(ctx context.Context, p plan) (_ Written, err error) {
	moved := 0
	defer func() {
		if err == nil {
			return
		}
		for _, name := range slices.Backward(p.moves[:moved]) {
			err = errors.Join(err, os.Rename(filepath.Join(w.folder, name), filepath.Join(w.stage.Path(), name)))
		}
	}()
	var out Written
	changed := map[string]bool{}
	for _, name := range p.moves {
		to := filepath.Join(w.folder, name)
		if there, err := isDirectory(to); err != nil {
			return nil, err
		} else if there { // it appeared after the plan was made
			return nil, &fs.PathError{Op: "write", Path: to, Err: fs.ErrExist}
		}
		if err := os.Rename(filepath.Join(w.stage.Path(), name), to); err != nil {
			return nil, err
		}
		moved++
		changed[filepath.Dir(to)] = true
		out = append(out, filepath.ToSlash(name))
	}
	for dir := range changed {
		if err := atomicfs.SyncDir(dir); err != nil {
			return nil, err
		}
	}
	if err := atomicfs.WriteFiles(ctx, p.files); err != nil {
		return nil, err
	}
	for _, f := range p.files {
		name, err := filepath.Rel(w.folder, f.Path)
		if err != nil {
			name = f.Path
		}
		out = append(out, filepath.ToSlash(name))
	}
	slices.Sort(out)
	return out, nil
}
