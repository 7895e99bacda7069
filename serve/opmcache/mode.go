package opmcache

import (
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/layers"
)

// Modes of a cache's files. The owner is 0:0, and a pod's user is arbitrary with group 0. The server only reads
// opm-json. It opens a pogreb database for writing even to read it, and creates a lock file next to it.
const (
	readDirMode   fs.FileMode = 0o755
	readFileMode  fs.FileMode = 0o644
	writeDirMode  fs.FileMode = 0o775
	writeFileMode fs.FileMode = 0o664
)

// placeBelowDir moves files below [Dir] and adds the parent directories.
func placeBelowDir(files []layers.Entry, dirMode, fileMode fs.FileMode) []layers.Entry {
	// A layer that created this directory with the default mode would make it read-only for everyone.
	out := []layers.Entry{layers.Dir(path.Dir(Dir), 0o777|fs.ModeSticky)}
	known := map[string]bool{path.Dir(Dir): true}
	for _, f := range files {
		f.Name, f.Mode = path.Join(Dir, f.Name), fileMode
		for dir := path.Dir(f.Name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			out = append(out, layers.Dir(dir, dirMode))
		}
		out = append(out, f)
	}
	return out
}
