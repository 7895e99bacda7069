//go:build !nobuildah

package evaluator

import (
	"context"
	"io"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/internal/memfs"
	"github.com/operator-bindery/bindery/layers"
)

// view is a tree as a read-only [fs.FS]. Links are resolved inside the tree.
type view struct {
	ctx   context.Context
	fetch func(context.Context, []*node) error
	root  *node // root of the tree, for resolving links
	at    string
}

var (
	_ fs.ReadDirFS = view{}
	_ fs.StatFS    = view{}
)

func (v view) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	p, err := walk(v.ctx, v.root, v.at+"/"+name, true, nil)
	if err != nil {
		return nil, err
	}
	return p.node(), nil
}

func (v view) Stat(name string) (fs.FileInfo, error) {
	n, err := v.find("stat", name)
	if err != nil {
		return nil, err
	}
	return infoOf(path.Base(name), n), nil
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := v.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	children, err := n.entries(v.ctx)
	if err != nil {
		return nil, err
	}
	var list []fs.DirEntry
	for _, child := range sorted(children) {
		list = append(list, fs.FileInfoToDirEntry(infoOf(child, children[child])))
	}
	return list, nil
}

func (v view) Open(name string) (fs.File, error) {
	n, err := v.find("open", name)
	if err != nil {
		return nil, err
	}
	info := infoOf(path.Base(name), n)
	if n.isDir() {
		list, err := v.ReadDir(name)
		return memfs.OpenDir(info, list), err
	}
	if n.data == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err := v.fetch(v.ctx, []*node{n}); err != nil {
		return nil, err
	}
	r, err := n.data.open()
	if err != nil {
		return nil, err
	}
	return openFile{r, info}, nil
}

type openFile struct {
	io.ReadCloser
	info memfs.Info
}

func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// infoOf describes a node by the name that it has.
func infoOf(name string, n *node) memfs.Info {
	kind := fs.ModeIrregular
	switch n.kind {
	case layers.KindDir:
		kind = fs.ModeDir
	case layers.KindSymlink:
		kind = fs.ModeSymlink
	case layers.KindFile:
		kind = 0
	}
	return memfs.Info{Base: name, Bytes: n.size, Kind: n.mode | kind}
}

// FS returns the file system of the image. It can be read until the evaluator is closed.
func (s *parsedStage) FS(ctx context.Context) fs.FS { return view{ctx, fetchAll, s.s.root, ""} }
