//go:build !nobuildah

package containerfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/operator-bindery/bindery/layers"
)

// disk is a directory of this machine. What is in it is looked at where an instruction wants it, and no link leads out of it.
type disk struct {
	root *os.Root
	name string // for ids: directories of other names have other files
	node *node
}

func openDisk(dir string) (*disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &disk{root: root, name: dir}
	d.node = &node{kind: layers.KindDir, mode: 0o755, load: d.loader(".")}
	return d, nil
}

func (d *disk) close() error { return d.root.Close() }

// maxEntries is how many names one directory may have.
const maxEntries = 200_000

// loader reads one directory.
func (d *disk) loader(dir string) func(context.Context) (map[string]*node, error) {
	return func(ctx context.Context) (_ map[string]*node, err error) {
		f, err := d.root.Open(filepath.FromSlash(dir))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		children := map[string]*node{}
		for {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			list, err := f.ReadDir(1000)
			for _, e := range list {
				if children[e.Name()], err = d.entry(path.Join(dir, e.Name())); err != nil {
					return nil, err
				}
			}
			if len(children) > maxEntries {
				return nil, fmt.Errorf("directory %.200q has more than %d entries", dir, maxEntries)
			}
			if err == io.EOF {
				return children, nil
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// special are kinds of files that no layer gets. They are errors only where they are copied.
const special = layers.KindWhiteout

func (d *disk) entry(name string) (*node, error) {
	info, err := d.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	n := &node{mode: info.Mode() & (fs.ModePerm | fs.ModeSticky), kind: special}
	switch {
	case info.IsDir():
		n.kind, n.load = layers.KindDir, d.loader(name)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := d.root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		n.kind, n.mode, n.link = layers.KindSymlink, fs.ModePerm, filepath.ToSlash(target)
	case info.Mode().IsRegular():
		n.kind, n.size, n.data = layers.KindFile, info.Size(), &diskFile{d, name, info}
	}
	return n, nil
}

// diskFile is a file that must stay what it was when it was looked at.
type diskFile struct {
	d    *disk
	name string
	info fs.FileInfo
}

func (f *diskFile) id() string { return fmt.Sprintf("%q %q", f.d.name, f.name) }

func (f *diskFile) open() (io.ReadCloser, error) {
	// A FIFO in its place by now would hold the program up.
	if is, err := f.d.root.Lstat(filepath.FromSlash(f.name)); err != nil {
		return nil, err
	} else if !is.Mode().IsRegular() {
		return nil, layers.ErrChanged
	}
	r, err := f.d.root.Open(filepath.FromSlash(f.name))
	if err != nil {
		return nil, err
	}
	return &steady{r, f.info}, nil
}

// steady is a file that can be closed without an error only if it did not change.
type steady struct {
	*os.File
	was fs.FileInfo
}

func (s *steady) Close() error {
	is, err := s.Stat()
	if err == nil && (is.Size() != s.was.Size() || !is.ModTime().Equal(s.was.ModTime()) || !os.SameFile(is, s.was)) {
		err = layers.ErrChanged
	}
	return errors.Join(err, s.File.Close())
}
