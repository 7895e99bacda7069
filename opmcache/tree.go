package opmcache

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// node is a file of a tree that a digest is of. Its name is relative to the root of the tree.
type node struct {
	name string
	mode fs.FileMode
	size int64
	open func() (io.ReadCloser, error)
}

// writeTree writes a directory tree as the tar archive that opm's digest of the format json is of: the root and everything
// in it in the order of a walk, with types, modes and sizes, and without owners and times. Directories have the mode that
// layers give them. The files may come in any order.
func writeTree(ctx context.Context, w io.Writer, files []node) error {
	all := []node{{name: ".", mode: fs.ModeDir | readDirMode}}
	known := map[string]bool{".": true}
	for _, f := range files {
		for dir := path.Dir(f.name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, node{name: dir, mode: fs.ModeDir | readDirMode})
		}
		all = append(all, f)
	}
	slices.SortFunc(all[1:], func(a, b node) int { return comparePaths(a.name, b.name) })
	return writeNodes(ctx, w, all)
}

// writeNodes writes nodes in their order.
func writeNodes(ctx context.Context, w io.Writer, all []node) error {
	tw := tar.NewWriter(ctxio.Writer{Ctx: ctx, W: w})
	for _, n := range all {
		if err := n.write(tw); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return tw.Close()
}

func (n node) write(tw *tar.Writer) (err error) {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: n.name, Mode: int64(n.mode.Perm()), Size: n.size}
	if n.mode.IsDir() {
		h.Typeflag, h.Size = tar.TypeDir, 0
	}
	for _, bit := range [...]struct {
		mode fs.FileMode
		bit  int64
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if n.mode&bit.mode != 0 {
			h.Mode |= bit.bit
		}
	}
	if err := tw.WriteHeader(h); err != nil || n.mode.IsDir() {
		return err
	}
	r, err := n.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	_, err = io.Copy(tw, r)
	return err
}
