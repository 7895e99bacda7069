package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/internal/opmformat"
)

// The formats of opm's caches, by the names that opm has for them.
const (
	FormatPogreb = opmformat.PogrebDir
	FormatJSON   = "json"
)

// opmFormat is the format of opm's cache in the directory; empty if there is none. One that has cache files of this
// program is no cache of opm's.
func (d *cacheDir) opmFormat() string {
	if d.fsys == nil || len(d.packages)+len(d.bad) > 0 {
		return ""
	}
	isDir := func(name string) bool {
		info, err := fs.Stat(d.fsys, name)
		return err == nil && info.IsDir()
	}
	if isDir(opmformat.PogrebDir) {
		return FormatPogreb
	}
	if _, err := fs.Stat(d.fsys, opmformat.DigestName); err == nil && isDir(opmformat.JSONDir) {
		return FormatJSON
	}
	return ""
}

// fromOPM makes a store of a cache of opm's. Where the cache does not match, the store is nil, and without an error the
// catalog has to be built.
func (l *loader) fromOPM(ctx context.Context, cache *cacheDir, format string) (Store, error) {
	log := l.Log.With("configs", l.src.name, "backend", format)
	if l.CacheDir != "" {
		log = log.With("cache", l.CacheDir)
	}
	store, err := readOPM(ctx, l.src.fsys, cache.fsys, format, l.Log)
	switch {
	case err == nil:
		log.Info("found existing cache contents")
		return store, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case l.EnforceIntegrity && errors.Is(err, errOPMDigest):
		return nil, fmt.Errorf("%w: %w", ErrIntegrity, err)
	case l.EnforceIntegrity:
		return nil, fmt.Errorf("%w: cache requires rebuild: %w", ErrIntegrity, err)
	case !l.MustWrite:
		// opm's directory is left as it is: opm may need it, and the next start reads it again.
		cache.opm = err
		return nil, nil
	case l.Refresh == nil:
		return nil, fmt.Errorf("cache directory: %w; it holds a cache of opm's, which this program does not write: remove that, or name another directory", err)
	}
	log.Warn("cache requires rebuild", "reason", err)
	log.Info("building cache")
	if err := l.Refresh(ctx, l.src.fsys, l.CacheDir, format); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	// What was written is read, so that it is known to be what every other start will find.
	return readOPM(ctx, l.src.fsys, cache.fsys, format, l.Log)
}

// errOPMDigest is a cache without a digest, in opm's words.
var errOPMDigest = errors.New("read existing cache digest")

func readOPMDigest(cache fs.FS) (string, error) {
	digest, err := opmformat.ReadDigest(cache)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errOPMDigest, err)
	}
	return digest, nil
}

// compareOPMDigest tells in opm's words that a cache is not of the catalog.
func compareOPMDigest(said, computed string) error {
	if said == computed {
		return nil
	}
	return fmt.Errorf("cache reports digest as %.100q, but computed digest is %q", said, computed)
}

// storedRecords are where the records of packages are that were read from a cache of opm's: in an area of this program, or
// still in the logs of a database, which are not copied.
type storedRecords struct {
	area *area
	logs []opmformat.Log
}

// logShift divides an offset into the number of a log, from one, and the offset in that. Number zero is the area.
const logShift = 40

func (s *storedRecords) ReadAt(b []byte, offset int64) (int, error) {
	log := int(offset >> logShift)
	if log == 0 {
		return s.area.ReadAt(b, offset)
	}
	return s.logs[log-1].ReadAt(b, offset&(1<<logShift-1))
}

// readOPM verifies a cache as opm does and makes a store of it. Nothing of the catalog's answers is built from its
// documents; those are read for the digest alone.
func readOPM(ctx context.Context, catalog, cache fs.FS, format string, log logger) (_ Store, err error) {
	b := newOPMBuilder(newArea(log))
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if format == FormatPogreb {
		err = b.readPogreb(ctx, catalog, cache)
	} else {
		err = b.readJSON(ctx, catalog, cache)
	}
	if err != nil {
		return nil, err
	}
	return b.store()
}

// below is the file system of a directory.
func below(fsys fs.FS, dir ...string) (fs.FS, error) { return fs.Sub(fsys, path.Join(dir...)) }
