package opmcache

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/internal/opmformat"
)

// writeTree writes a directory tree as the tar archive that opm's digest of the format json is of: the root and everything
// in it in the order of a walk, with types, modes and sizes, and without owners and times. Directories have the mode that
// layers give them. The files may come in any order.
func writeTree(ctx context.Context, w io.Writer, files []opmformat.Node) error {
	all := []opmformat.Node{{Name: ".", Mode: fs.ModeDir | readDirMode}}
	known := map[string]bool{".": true}
	for _, f := range files {
		for dir := path.Dir(f.Name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, opmformat.Node{Name: dir, Mode: fs.ModeDir | readDirMode})
		}
		all = append(all, f)
	}
	slices.SortFunc(all[1:], func(a, b opmformat.Node) int { return comparePaths(a.Name, b.Name) })
	return opmformat.WriteNodes(ctx, w, all)
}
