package serve

import (
	"context"
	"errors"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Database is the catalog in an index database. It is opened for loading and closed afterwards: answers come from cache
// files like those of any other catalog. Invalid image references are accepted, as by opm, which has no such rule for
// databases: one related image must not keep a catalog from its cluster.
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
