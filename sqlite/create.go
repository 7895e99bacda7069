package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// WriteOptions say how a database is written. The zero value is useful.
type WriteOptions struct {
	// Lossy writes a catalog of which a database cannot hold everything. What it cannot hold is left out, and each piece
	// is a finding of kind Lost. Without it such a catalog is refused with a *[LossError].
	Lossy bool
	// Origins, unless nil, returns what a bundle says of its own edges. Of bundles that it knows nothing of the columns say what
	// their channels and their ClusterServiceVersions do.
	Origins func(pkg, bundle string) (Origin, bool)
	// HeadManifests writes the manifests of the heads of channels, and of bundles without an image, and no others:
	// columns csv and bundle are NULL, as opm leaves them after an addition in mode semver or semver-skippatch.
	HeadManifests bool
	// AnyImages writes images that are no pull specs, see [Options].
	AnyImages bool
	// New lets [Replace] make a database where there is none, or an empty file.
	New bool
	// Limits are what the database will be read with: what exceeds them is not written.
	Limits Limits
	// Wait is how long to wait for another writer of the same file; default 10 seconds.
	Wait time.Duration
}

func (o WriteOptions) withDefaults() WriteOptions {
	o.Limits = o.Limits.withDefaults()
	if o.Wait == 0 {
		o.Wait = 10 * time.Second
	}
	return o
}

// Written is what a database was made of.
type Written struct {
	Packages int `json:"packages"`
	Channels int `json:"channels"`
	Bundles  int `json:"bundles"`
	// Entries are the rows of table channel_entry.
	Entries int `json:"entries"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	// Findings list what the database says differently from the catalog (kind Changed) or not at all (kind Lost), sorted.
	Findings []Finding `json:"findings"`
}

// ErrLoss is the kind of a *[LossError].
var ErrLoss = fault.New(fault.Input, "an index database cannot hold the whole catalog")

// LossError is the error for a catalog that a database cannot hold without loss.
type LossError struct {
	// Findings are what would be lost, sorted; all are of kind Lost.
	Findings []Finding
}

// Error names the first losses.
func (e *LossError) Error() string {
	const most = 10
	text := ErrLoss.Error()
	for i, f := range e.Findings {
		if i == most {
			return text + fmt.Sprintf("\n  and %d more", len(e.Findings)-most)
		}
		text += "\n  " + f.text()
	}
	return text
}

// Unwrap returns [ErrLoss].
func (e *LossError) Unwrap() error { return ErrLoss }

// text is a finding in one line.
func (f Finding) text() string {
	text := ""
	for _, part := range []struct{ label, value string }{{"package", f.Package}, {"channel", f.Channel}, {"bundle", f.Bundle}, {"field", f.Field}} {
		if part.value != "" {
			text += part.label + " " + fault.Quote(part.value) + ", "
		}
	}
	if text == "" {
		return f.Reason
	}
	return text[:len(text)-2] + ": " + f.Reason
}

// Create writes an index database of schema version 13 with the blobs of a catalog, in place of the file at path or of
// nothing. The blobs come in writing order, such as those of [declcfg.Catalog.Blobs] and [DB.Blobs]; one package is in
// memory at a time, and of its manifests those of one bundle. The same blobs make the same bytes, with the same version
// of the SQLite library.
//
// The database appears whole or not at all: after an error the old file is what it was, and nothing is left beside it.
// A symbolic link at path is refused. While a database is being replaced, it is locked against other writers; of those
// that make a new file at the same time each waits for the one before.
//
// The packages must be valid. Errors are joined, so that all invalid packages are named; their kinds are those of
// [declcfg.Catalog.Validate], *[LossError], ErrInvalid, ErrLimit, ErrLocked, ErrUnsupported for a file with a journal beside it,
// ErrWrite, and those of the file system and of the blobs.
func Create(ctx context.Context, path string, blobs iter.Seq2[declcfg.Blob, error], o WriteOptions) (_ *Written, err error) {
	o = o.withDefaults()
	defer func() {
		if err != nil {
			err = fmt.Errorf("write database %s: %w", fault.Quote(path), err)
		}
	}()
	lock, err := lockForWriting(ctx, path, o.Wait)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if err := lock.keepOut(ctx); err != nil {
		return nil, err
	}
	return writeFile(ctx, path, lock, blobs, o)
}

// Replace changes a database: change is given the open database, and returns the blobs of its new content, for which it
// may read the database until the last blob has been taken. Other writers are kept out in between. If change returns
// neither blobs nor an error the file stays as it is, and Written is nil.
//
// If there is no file, the error is fs.ErrNotExist, or change is given nil, as [WriteOptions.New] says; a second such call waits
// for the first, and is given what that made.
//
// What the database has and its catalog does not, such as bundles in no channel, is not in the new file: [DB.Findings]
// names it. Otherwise everything is as in [Create]. The file need not be of the last schema version; the new one is.
func Replace(ctx context.Context, path string, read Options, write WriteOptions, change func(context.Context, *DB) (iter.Seq2[declcfg.Blob, error], error)) (_ *Written, err error) {
	write = write.withDefaults()
	lock, err := lockForWriting(ctx, path, write.Wait)
	if err != nil {
		return nil, fmt.Errorf("write database %s: %w", fault.Quote(path), err)
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	var db *DB
	if !write.New || lock.stat != nil && lock.stat.Size() > 0 {
		// The database is opened first: closing any file of it after it is locked would end the lock.
		if db, err = Open(ctx, path, read); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	if err := lock.keepOut(ctx); err != nil {
		return nil, fmt.Errorf("write database %s: %w", fault.Quote(path), err)
	}
	blobs, err := change(ctx, db)
	if err != nil || blobs == nil {
		return nil, err
	}
	written, err := writeFile(ctx, path, lock, blobs, write)
	if err != nil {
		return nil, fmt.Errorf("write database %s: %w", fault.Quote(path), err)
	}
	return written, nil
}

// losses returns the findings of kind Lost.
func losses(list []Finding) []Finding {
	var lost []Finding
	for _, f := range list {
		if f.Kind == Lost {
			lost = append(lost, f)
		}
	}
	return slices.Clip(lost)
}
