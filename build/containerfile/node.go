//go:build !nobuildah

package containerfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/layers"
)

// node is one name in a tree: of the context, of an image, or of a stage. Nodes of a stage belong to it alone; all others are
// never changed once their entries are there.
type node struct {
	kind     layers.Kind // a file, a directory or a symbolic link
	mode     fs.FileMode // permissions and the three special bits
	uid, gid int
	xattrs   map[string]string
	link     string
	size     int64
	data     content // of a file

	children map[string]*node
	load     func(context.Context) (map[string]*node, error) // gives the children when they are first needed

	own    bool // it is in the layer of the stage, and not below it
	over   bool // lower layers have a directory in its place
	opaque bool // what lower layers have in the directory is gone
}

// content is where the bytes of a file are.
type content interface {
	// open fails for a file of an image that has not been fetched.
	open() (io.ReadCloser, error)
	// id is the same for the same bytes only.
	id() string
}

func newDir(mode fs.FileMode) *node {
	return &node{kind: layers.KindDir, mode: mode, children: map[string]*node{}}
}

func (n *node) isDir() bool { return n.kind == layers.KindDir }

// entries are what is in a directory.
func (n *node) entries(ctx context.Context) (map[string]*node, error) {
	if n.load != nil {
		children, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		n.children, n.load = children, nil
	}
	return n.children, nil
}

// sorted are the names of entries.
func sorted(children map[string]*node) []string { return slices.Sorted(maps.Keys(children)) }

// derive is the tree above another one: the same, of which nothing is its own yet. It is made as far as it is looked at.
func (v *evaluation) derive(n *node) *node {
	d := *n
	d.own, d.over, d.opaque, d.children = false, false, false, nil
	if n.isDir() {
		d.load = func(ctx context.Context) (map[string]*node, error) {
			below, err := n.entries(ctx)
			if err != nil {
				return nil, err
			}
			if err := v.grow(len(below)); err != nil {
				return nil, err
			}
			children := make(map[string]*node, len(below))
			for name, c := range below {
				children[name] = v.derive(c)
			}
			return children, nil
		}
	}
	return &d
}

// errNotReady is a programming error.
var errNotReady = errors.New("the content has not been fetched")
