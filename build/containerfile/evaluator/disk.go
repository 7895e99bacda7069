//go:build !nobuildah

package evaluator

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

// disk is a local directory, read on demand. No symbolic link leads out of it.
type disk struct {
	root *os.Root
	name string // part of content ids, so that equal paths in different directories differ
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

// maxEntries is the maximum number of entries of one directory.
const maxEntries = 200_000

// loader returns a function that reads one directory.
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

// special marks sockets, FIFOs and devices, which cannot be copied. They are errors only if an instruction copies them.
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

// diskFile is a file that must not change between being listed and being read.
type diskFile struct {
	d    *disk
	name string
	info fs.FileInfo
}

func (f *diskFile) id() string { return fmt.Sprintf("%q %q", f.d.name, f.name) }

func (f *diskFile) open() (io.ReadCloser, error) {
	// Opening a FIFO that took the file's place would block.
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

// steady reports an error on Close if the file changed while it was read.
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
