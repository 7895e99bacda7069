package manifests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// listFile has the names of the files that were written to a directory, one a line. kubectl and kustomize pass it over.
const listFile = ".bindery-manifests"

// WriteDir writes files to a directory, which appears whole or not at all. One that exists is replaced if it is empty
// or has nothing but what WriteDir wrote to it; else the error is [ErrForeign].
func WriteDir(ctx context.Context, dir string, all []File) (err error) {
	if err := checkOwn(dir); err != nil {
		return err
	}
	d, err := atomicfs.NewDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	var names strings.Builder
	for _, f := range all {
		fmt.Fprintln(&names, f.Name)
	}
	for _, f := range append(slices.Clone(all), File{listFile, []byte(names.String())}) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !fs.ValidPath(f.Name) {
			return fmt.Errorf("invalid file name %.200q", f.Name)
		}
		to := filepath.Join(d.Path(), filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := writeDurable(to, f.Text); err != nil {
			return err
		}
	}
	return d.Replace()
}

// writeDurable writes a new file to the disk. The directory is not visible yet, so that the file needs no other name
// until it is complete.
func writeDurable(name string, text []byte) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

// checkOwn refuses a directory with files that WriteDir did not write.
func checkOwn(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	own := map[string]bool{listFile: true}
	text, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range strings.Split(string(text), "\n") {
		for ; name != "." && name != "" && fs.ValidPath(name); name = path.Dir(name) {
			own[name] = true
		}
	}
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case !own[name]:
			return fmt.Errorf("%w: %q in %q", ErrForeign, name, dir)
		}
		return nil
	})
}
