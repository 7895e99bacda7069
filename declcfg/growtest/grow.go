// Package growtest makes large catalogs from real ones, for tests and benchmarks.
package growtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Catalog fills the existing directory to with a catalog of at least the given numbers of packages and bundles. It
// copies the packages of the catalogs in from, which have one directory per package, in turn and repeatedly. Each copy
// has a new package name, and bundle names and images that contain it are changed alike. So sizes are as uneven as real
// ones, and no two copies have the same bytes. The same input gives the same catalog.
func Catalog(to string, packages, bundles int, from ...fs.FS) error {
	var originals []original
	for _, fsys := range from {
		dirs, err := fs.ReadDir(fsys, ".")
		if err != nil {
			return err
		}
		for _, d := range dirs {
			if !d.IsDir() {
				continue
			}
			o, err := read(fsys, d.Name())
			if err != nil {
				return err
			}
			if o.bundles > 0 {
				originals = append(originals, o)
			}
		}
	}
	if len(originals) == 0 {
		return errors.New("there are no packages to copy")
	}
	for i := 0; packages > 0 || bundles > 0; i++ {
		o := originals[i%len(originals)]
		if err := o.copy(to, fmt.Sprintf("%s-%04d", o.name, i)); err != nil {
			return err
		}
		packages, bundles = packages-1, bundles-o.bundles
	}
	return nil
}

// original is a package to copy.
type original struct {
	name    string
	files   map[string][]byte // by name in the directory of the package
	bundles int
}

// read reads the files of a package's directory.
func read(fsys fs.FS, name string) (original, error) {
	o := original{name: name, files: map[string][]byte{}}
	err := fs.WalkDir(fsys, name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		o.files[strings.TrimPrefix(path, name+"/")] = text
		o.bundles += bytes.Count(text, []byte("schema: olm.bundle\n")) + bytes.Count(text, []byte(`"olm.bundle",`))
		return nil
	})
	return o, err
}

// copy writes the package under another name.
func (o original) copy(to, name string) error {
	for file, text := range o.files {
		path := filepath.Join(to, name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(o.name), []byte(name)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
