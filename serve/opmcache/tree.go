package opmcache

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// writeTree writes a directory tree as the tar archive that is the digest input of opm's format json: the root and
// everything in it in the order of a walk, with types, modes and sizes, and without owners and times. Directories have
// the mode that layers give them. The files may be in any order.
func writeTree(ctx context.Context, w io.Writer, files []node) error {
	all := []node{{Name: ".", Mode: fs.ModeDir | readDirMode}}
	known := map[string]bool{".": true}
	for _, f := range files {
		for dir := path.Dir(f.Name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, node{Name: dir, Mode: fs.ModeDir | readDirMode})
		}
		all = append(all, f)
	}
	sort.Slice(all[1:], func(i, j int) bool { return comparePaths(all[i+1].Name, all[j+1].Name) < 0 })
	return writeNodes(ctx, w, all)
}

// node is a file or directory of a tree. Its name is slash-separated and relative to the root of the tree.
type node struct {
	Name string
	Mode fs.FileMode
	Size int64
	Open func() (io.ReadCloser, error)
}

// writeNodes writes nodes in their order to the tar archive of [writeTree].
func writeNodes(ctx context.Context, w io.Writer, all []node) error {
	tw := tar.NewWriter(ctxio.Writer{Ctx: ctx, W: w})
	for _, n := range all {
		if err := n.write(tw); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return tw.Close()
}

func (n node) write(tw *tar.Writer) (err error) {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: n.Name, Mode: int64(n.Mode.Perm()), Size: n.Size}
	if n.Mode.IsDir() {
		h.Typeflag, h.Size = tar.TypeDir, 0
	}
	for _, bit := range [...]struct {
		mode fs.FileMode
		bit  int64
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if n.Mode&bit.mode != 0 {
			h.Mode |= bit.bit
		}
	}
	if err := tw.WriteHeader(h); err != nil || n.Mode.IsDir() {
		return err
	}
	r, err := n.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	_, err = io.Copy(tw, r)
	return err
}

// maxEntries limits the memory for a cache that is read.
const maxEntries = 2_000_000

// nodesOf returns the files and directories of a tree in the order of a walk, without symbolic links, as opm does.
func nodesOf(ctx context.Context, tree fs.FS) ([]node, error) {
	var nodes []node
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.Type()&fs.ModeSymlink != 0:
			return nil
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s: neither a file nor a directory", name)
		case len(nodes) == maxEntries:
			return fmt.Errorf("more than %d files", maxEntries)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		nodes = append(nodes, node{Name: name, Mode: info.Mode(), Size: info.Size(),
			Open: func() (io.ReadCloser, error) { return tree.Open(name) }})
		return nil
	})
	return nodes, err
}
