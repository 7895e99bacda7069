package appregistry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Writer writes package manifests into a folder, all or nothing: it writes to a staging directory until Commit. It is
// safe for concurrent use.
//
// An existing package is extended: new bundles are added, existing ones must be the same, and its package.yaml is
// replaced. A reader sees whole bundles only, and sees a package.yaml only when all bundles that it names exist.
type Writer struct {
	folder string
	stage  *atomicfs.Dir
	root   *os.Root
	whole  bool // the folder does not exist yet and appears as a whole

	mu        sync.Mutex
	manifests map[string][]byte // the package manifests
	bundles   map[string]bool   // PACKAGE/VERSION
}

// NewWriter begins writing into a folder and creates the folder if needed. The caller must call Abort at the end.
func NewWriter(folder string) (_ *Writer, err error) {
	w := &Writer{folder: filepath.Clean(folder), manifests: map[string][]byte{}, bundles: map[string]bool{}}
	target := filepath.Join(w.folder, "bindery-export")
	info, err := os.Stat(w.folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target, w.whole = w.folder, true
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "write", Path: w.folder, Err: errors.New("exists and is not a directory")}
	}
	if w.stage, err = atomicfs.NewDir(target); err != nil {
		return nil, err
	}
	if w.root, err = os.OpenRoot(w.stage.Path()); err != nil {
		return nil, errors.Join(err, w.stage.Abort())
	}
	return w, nil
}

// Abort removes everything that has not been committed.
func (w *Writer) Abort() error { return errors.Join(w.root.Close(), w.stage.Abort()) }

// Package writes a package manifest.
func (w *Writer) Package(m Manifest) error {
	if err := checkName(m.Package); err != nil {
		return fmt.Errorf("package %s: %w", fault.Quote(m.Package), err)
	}
	text, err := m.Text()
	if err != nil {
		return err
	}
	if err := w.root.MkdirAll(m.Package, 0o777); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.manifests[m.Package] != nil {
		return fmt.Errorf("%w: package %s is there twice", ErrInvalid, fault.Quote(m.Package))
	}
	w.manifests[m.Package] = text
	return w.file(filepath.Join(m.Package, ManifestName), bytes.NewReader(text))
}

// Bundle writes the manifests of a bundle, every file and directory in fsys, to the directory named by its version or
// another name. Symbolic links are followed as fsys does.
func (w *Writer) Bundle(ctx context.Context, pkg, version string, fsys fs.FS) error {
	for _, name := range []string{pkg, version} {
		if err := checkName(name); err != nil {
			return fmt.Errorf("bundle %s of package %s: %w", fault.Quote(version), fault.Quote(pkg), err)
		}
	}
	at := filepath.Join(pkg, version)
	w.mu.Lock()
	twice := w.bundles[at]
	w.bundles[at] = true
	w.mu.Unlock()
	if twice {
		return fmt.Errorf("%w: version %s of package %s is there twice", ErrInvalid, fault.Quote(version),
			fault.Quote(pkg))
	}
	if err := w.root.MkdirAll(at, 0o777); err != nil {
		return err
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || name == "." {
			return err
		}
		local, err := filepath.Localize(name)
		if err != nil {
			return fmt.Errorf("%s: %w", fault.Quote(name), err)
		}
		info, err := fs.Stat(fsys, name)
		switch {
		case err != nil:
			return err
		case info.IsDir() && d.IsDir():
			return w.root.MkdirAll(filepath.Join(at, local), 0o777)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%w: %s is neither a regular file nor a directory", ErrInvalid, fault.Quote(name))
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(w.file(filepath.Join(at, local), f), f.Close())
	})
	if err != nil {
		return fmt.Errorf("bundle %s of package %s: %w", fault.Quote(version), fault.Quote(pkg), err)
	}
	return nil
}

// checkName refuses names that are not valid directory names on all systems.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`) || !filepath.IsLocal(name) ||
		len(name) > 255 {
		return fmt.Errorf("%w: not the name of a directory", ErrInvalid)
	}
	return nil
}

func (w *Writer) file(name string, from io.Reader) (err error) {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, from); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Written are the paths that Commit created or replaced, relative to the folder and sorted: PACKAGE for new packages,
// PACKAGE/VERSION and PACKAGE/package.yaml for extended ones.
type Written []string

// Commit moves everything to the folder. After an error the folder is unchanged.
func (w *Writer) Commit(ctx context.Context) (Written, error) {
	if err := w.sync(); err != nil {
		return nil, err
	}
	if w.whole {
		if err := os.Chmod(w.stage.Path(), dirMode(w.stage.Path())); err != nil {
			return nil, err
		}
		return w.packages(), w.stage.Commit()
	}
	p, err := w.plan()
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return w.carry(ctx, p)
}

// packages returns the sorted names of the written directories.
func (w *Writer) packages() []string {
	names := map[string]bool{}
	for name := range w.manifests {
		names[name] = true
	}
	for name := range w.bundles {
		names[filepath.Dir(name)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// dirMode returns the mode that a directory created in dir gets.
func dirMode(dir string) fs.FileMode {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		if info, err := entries[0].Info(); err == nil && info.IsDir() {
			return info.Mode().Perm()
		}
	}
	return 0o755
}

// sync makes the directories durable; the files already are.
func (w *Writer) sync() error {
	return filepath.WalkDir(w.stage.Path(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = atomicfs.SyncDir(path)
		}
		return err
	})
}
