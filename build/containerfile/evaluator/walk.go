//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/layers"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// errLinks is returned for paths through too many links.
var errLinks = errors.New("too many links")

// maxDepth is the maximum depth of directories.
const maxDepth = 100

// step is a node in a path and its name.
type step struct {
	name string
	n    *node
}

// place is a resolved path: all nodes from the root.
type place []step

func (p place) node() *node { return p[len(p)-1].n }

// path returns the path without links, relative to the root; "." for the root.
func (p place) path() string {
	names := make([]string, 0, len(p))
	for _, s := range p[1:] {
		names = append(names, s.name)
	}
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// walk resolves a path from the root of a tree. Links are resolved inside the tree; the last element is resolved if
// follow is set. ".." stops at the root. mkdir, unless nil, creates missing directories.
func walk(ctx context.Context, root *node, path string, follow bool, mkdir func() *node) (place, error) {
	at := place{{"", root}}
	todo := strings.Split(path, "/")
	links := 0
	for len(todo) > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = at[:max(1, len(at)-1)]
			continue
		}
		dir := at.node()
		if !dir.isDir() {
			return nil, fmt.Errorf("%.200q is not a directory", "/"+at.path())
		}
		children, err := dir.entries(ctx)
		if err != nil {
			return nil, err
		}
		n := children[name]
		if n == nil {
			if mkdir == nil {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			n = mkdir()
			children[name] = n
		}
		if n.kind == layers.KindSymlink && (follow || hasName(todo)) {
			if links++; links > maxLinks {
				return nil, fmt.Errorf("%w: %.200q leads through more than %d", errLinks, path, maxLinks)
			}
			if strings.HasPrefix(n.link, "/") {
				at = at[:1]
			}
			todo = append(strings.Split(n.link, "/"), todo...)
			continue
		}
		if at = append(at, step{name, n}); len(at) > maxDepth {
			return nil, fmt.Errorf("%.200q is more than %d directories deep", path, maxDepth)
		}
	}
	return at, nil
}

// hasName reports whether the rest of a path has more than slashes.
func hasName(todo []string) bool {
	return slices.ContainsFunc(todo, func(name string) bool { return name != "" && name != "." })
}

// setEntry sets an entry of a directory in a stage. A directory that replaces a directory keeps the old entries.
func setEntry(ctx context.Context, dir *node, name string, n *node) error {
	children, err := dir.entries(ctx)
	if err != nil {
		return err
	}
	was := children[name]
	children[name] = n
	n.inLayer = true
	if was == nil {
		return nil
	}
	n.replacesDir = was.replacesDir || was.isDir() && !was.inLayer
	switch {
	case !n.isDir():
	case was.isDir():
		n.children, n.load, n.opaque = was.children, was.load, was.opaque
	default:
		n.opaque = n.replacesDir
	}
	return nil
}
