package serve

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
)

// Source is the origin of a catalog: [Directory], [FileSystem], [Database] or [Blobs].
type Source struct {
	name  string
	fsys  fs.FS
	cache fs.FS
	blobs iter.Seq2[declcfg.Blob, error]

	anyImages bool // images need not be pull specs

	open  func(context.Context) (Source, error) // the source as it is then; nil where it cannot be opened again
	path  string                                // on the disk, whose changes are changes of the catalog; empty where there is none
	close []func() error

	dir      string // that fsys is opened on; empty where it is something else
	cacheDir string // below the source's directory, slash-separated, and not in fsys; empty where there is none
}

// Directory is a file-based catalog in a directory.
func Directory(dir string) (Source, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return Source{}, err
	}
	return Source{
		name: dir, fsys: fsys, path: dir, dir: dir,
		// A path may lead to another directory later: links are followed again.
		open: func(context.Context) (Source, error) { return Directory(dir) },
	}, nil
}

// FileSystem is a file-based catalog in any file system, such as that of an image. cache, which may be nil, holds the
// cache files that came with it; they are only read. name is for messages.
func FileSystem(name string, catalog, cache fs.FS) Source {
	return Source{name: name, fsys: catalog, cache: cache}
}

// Blobs is a catalog whose blobs are yielded one after another, all of one package before those of the next. They are
// read once. name is for messages.
func Blobs(name string, blobs iter.Seq2[declcfg.Blob, error]) Source {
	return Source{name: name, blobs: blobs}
}

// Reopened returns the source with a function that opens it again, so that [Run] can reload it. open is called by one
// goroutine at a time.
func (s Source) Reopened(open func(context.Context) (Source, error)) Source {
	s.open = open
	return s
}

// Watched returns the source with a file or directory that is checked for changes; see [Options].ReloadEvery.
func (s Source) Watched(path string) Source {
	s.path = path
	return s
}

// Closing returns the source with a function that is called when nothing reads from it any longer. [Run] calls it for
// its source and for sources that it opens again.
func (s Source) Closing(release func() error) Source {
	s.close = append(s.close[:len(s.close):len(s.close)], release)
	return s
}

// Close releases what the source holds.
func (s Source) Close() error {
	var errs []error
	for _, c := range s.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
