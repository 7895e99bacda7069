package opmformat

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// Node is a file or directory of a tree that a digest is of. Its name is slash-separated and relative to the root of the tree.
type Node struct {
	Name string
	Mode fs.FileMode
	Size int64
	Open func() (io.ReadCloser, error)
}

// WriteNodes writes nodes in their order, as the tar archive that opm's digest of the format json is of: with types, modes and
// sizes, and without owners and times.
func WriteNodes(ctx context.Context, w io.Writer, all []Node) error {
	tw := tar.NewWriter(ctxio.Writer{Ctx: ctx, W: w})
	for _, n := range all {
		if err := n.write(tw); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return tw.Close()
}

func (n Node) write(tw *tar.Writer) (err error) {
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

// MaxEntries bounds what is kept in memory of a cache that is read.
const MaxEntries = 2_000_000

// NodesOf are the files and directories of a tree in the order of a walk. Symbolic links are left out, as opm does.
func NodesOf(ctx context.Context, tree fs.FS) ([]Node, error) {
	var nodes []Node
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
		case len(nodes) == MaxEntries:
			return fmt.Errorf("more than %d files", MaxEntries)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		nodes = append(nodes, Node{Name: name, Mode: info.Mode(), Size: info.Size(), Open: func() (io.ReadCloser, error) { return tree.Open(name) }})
		return nil
	})
	return nodes, err
}
