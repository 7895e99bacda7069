package serve

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
)

// Source is a catalog to load: from [Directory], [FileSystem], [Database] or [Blobs].
type Source struct {
	name  string
	fsys  fs.FS
	cache fs.FS
	blobs iter.Seq2[declcfg.Blob, error]

	anyImages bool // images need not be pull specs

	open func(context.Context) (Source, error) // reopens the source; nil if that is impossible
	// on disk, whose changes are changes of the catalog; empty if there is none
	path  string
	close []func() error

	dir      string // the directory that fsys is opened on; empty for other file systems
	cacheDir string // below the source's directory, slash-separated, and hidden in fsys; empty if there is none
}

// Directory returns a file-based catalog in a directory.
func Directory(dir string) (Source, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return Source{}, err
	}
	return Source{
		name: dir, fsys: fsys, path: dir, dir: dir,
		// The path may be a link that later leads to another directory.
		open: func(context.Context) (Source, error) { return Directory(dir) },
	}, nil
}

// FileSystem returns a file-based catalog in any file system, such as that of an image. cache, which may be nil,
// contains its read-only cache files. name is for messages.
func FileSystem(name string, catalog, cache fs.FS) Source {
	return Source{name: name, fsys: catalog, cache: cache}
}

// Blobs returns a catalog of a sequence of blobs, sorted by package, such as that of a database. They are read once.
// name is for messages.
func Blobs(name string, blobs iter.Seq2[declcfg.Blob, error]) Source {
	return Source{name: name, blobs: blobs}
}

// Reopened returns the source with a function that opens it again, so that [Run] can reload it. open is called by one
// goroutine at a time.
func (s Source) Reopened(open func(context.Context) (Source, error)) Source {
	s.open = open
	return s
}

// Watched returns the source with a file or directory that is watched for changes; see [Options.ReloadEvery].
func (s Source) Watched(path string) Source {
	s.path = path
	return s
}

// Closing returns the source with a function to call after its last use. [Run] calls it for the sources that it is
// given or opens again.
func (s Source) Closing(release func() error) Source {
	s.close = append(s.close[:len(s.close):len(s.close)], release)
	return s
}

// Close releases the source's resources.
func (s Source) Close() error {
	var errs []error
	for _, c := range s.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
