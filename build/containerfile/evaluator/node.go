//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/layers"
)

// node is a file or directory in the tree of a context, an image or a stage. A stage changes its own nodes only. Nodes
// of contexts and images are immutable once their entries are loaded.
type node struct {
	kind     layers.Kind // a file, a directory or a symbolic link
	mode     fs.FileMode // permissions and the three special bits
	uid, gid int
	xattrs   map[string]string
	link     string
	size     int64
	data     content // content of a file

	children map[string]*node
	load     func(context.Context) (map[string]*node, error) // returns the children, called on first use

	inLayer     bool // the stage's layer has it; otherwise a lower layer has
	replacesDir bool // it replaces a directory of lower layers
	opaque      bool // it hides the entries that lower layers have in the directory
}

// content is the content of a file.
type content interface {
	// open fails for a file of an image that has not been fetched.
	open() (io.ReadCloser, error)
	// id differs for different bytes.
	id() string
}

func newDir() *node {
	return &node{kind: layers.KindDir, mode: 0o755, children: map[string]*node{}}
}

func (n *node) isDir() bool { return n.kind == layers.KindDir }

// entries returns the children of a directory and loads them if needed.
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

// sorted returns the sorted names of entries.
func sorted(children map[string]*node) []string { return slices.Sorted(maps.Keys(children)) }

// derive returns a copy of a tree for a stage in which nothing has changed. Directories are copied when they are first
// read.
func (v *evaluation) derive(n *node) *node {
	d := *n
	d.inLayer, d.replacesDir, d.opaque, d.children = false, false, false, nil
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

// errNotReady is returned on a programming error: a file that was not fetched is opened.
var errNotReady = errors.New("the content has not been fetched")
