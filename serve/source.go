package serve

import (
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
)

// Source is where a catalog comes from: [Directory], [FileSystem] or [Blobs].
type Source struct {
	name  string
	fsys  fs.FS
	cache fs.FS
	blobs iter.Seq2[declcfg.Blob, error]
}

// Directory is a file-based catalog in a directory.
func Directory(dir string) (Source, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return Source{}, err
	}
	return Source{name: dir, fsys: fsys}, nil
}

// FileSystem is a file-based catalog in any file system, such as that of an image. cache, which may be nil, holds the
// cache files that came with it; they are only read. name is for messages.
func FileSystem(name string, catalog, cache fs.FS) Source {
	return Source{name: name, fsys: catalog, cache: cache}
}

// Blobs is a catalog whose blobs come one after another, all of one package before those of the next, such as that of
// a database. They are read once. name is for messages.
func Blobs(name string, blobs iter.Seq2[declcfg.Blob, error]) Source {
	return Source{name: name, blobs: blobs}
}

// Name is what messages call the source.
func (s Source) Name() string { return s.name }
