package serve

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
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

// Database returns the catalog of an index database as a source. The database is opened for loading and closed
// afterwards: answers come from cache files like those of any other catalog. Images that are not pull specs are
// accepted: opm serves them, and one related image must not keep a catalog from its cluster.
func Database(ctx context.Context, path string, o sqlite.Options) Source {
	o.AnyImages = true
	s := Blobs(path, databaseBlobs(ctx, path, o))
	s.anyImages = true
	return s.Watched(path).
		Reopened(func(ctx context.Context) (Source, error) { return Database(ctx, path, o), nil })
}

func databaseBlobs(ctx context.Context, path string, o sqlite.Options) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		db, err := sqlite.Open(ctx, path, o)
		if err != nil {
			yield(nil, err)
			return
		}
		stopped := false
		for blob, err := range db.Blobs(ctx) {
			if !yield(blob, err) {
				stopped = true
				break
			}
		}
		if err := db.Close(); err != nil && !stopped {
			yield(nil, errors.Join(errors.New("close database"), err))
		}
	}
}
