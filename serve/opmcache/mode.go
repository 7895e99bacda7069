package opmcache

import (
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/layers"
)

// Modes of what is in a cache. Everything belongs to 0:0, and the user of a cluster's pod is any with the group 0. The server
// only reads opm-json. A pogreb database is opened for writing even to read it, and has a lock file beside it.
const (
	readDirMode   fs.FileMode = 0o755
	readFileMode  fs.FileMode = 0o644
	writeDirMode  fs.FileMode = 0o775
	writeFileMode fs.FileMode = 0o664
)

// place moves files to their place below [Dir], with the directories that lead there.
func place(files []layers.Entry, dirMode, fileMode fs.FileMode) []layers.Entry {
	// A layer that made this directory on the way would take the right to write there from everybody.
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
