//go:build !nobuildah

package containerfile

import (
	"context"
	"io"
	"io/fs"
	"path"
	"time"

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
	return nodeInfo{path.Base(name), n}, nil
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
		list = append(list, fs.FileInfoToDirEntry(nodeInfo{child, children[child]}))
	}
	return list, nil
}

func (v view) Open(name string) (fs.File, error) {
	n, err := v.find("open", name)
	if err != nil {
		return nil, err
	}
	info := nodeInfo{path.Base(name), n}
	if n.isDir() {
		list, err := v.ReadDir(name)
		return &openDir{info, list}, err
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
	info nodeInfo
}

func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

type openDir struct {
	info nodeInfo
	list []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	list := d.list
	if n > 0 {
		if len(list) == 0 {
			return nil, io.EOF
		}
		list = list[:min(n, len(list))]
	}
	d.list = d.list[len(list):]
	return list, nil
}

// nodeInfo implements [fs.FileInfo].
type nodeInfo struct {
	name string
	n    *node
}

func (i nodeInfo) Name() string       { return i.name }
func (i nodeInfo) Size() int64        { return i.n.size }
func (i nodeInfo) ModTime() time.Time { return time.Time{} }
func (i nodeInfo) IsDir() bool        { return i.n.isDir() }
func (i nodeInfo) Sys() any           { return nil }
func (i nodeInfo) Mode() fs.FileMode {
	switch i.n.kind {
	case layers.KindDir:
		return i.n.mode | fs.ModeDir
	case layers.KindSymlink:
		return i.n.mode | fs.ModeSymlink
	case layers.KindFile:
		return i.n.mode
	}
	return i.n.mode | fs.ModeIrregular
}

// FS returns the file system of the image. It can be read until the evaluator is closed.
func (s *Stage) FS(ctx context.Context) fs.FS { return view{ctx, fetchAll, s.s.root, ""} }
