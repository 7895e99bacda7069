package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// WriteOptions configure writing a database. The zero value is useful.
type WriteOptions struct {
	// Lossy allows writing a catalog that a database cannot represent completely. What it cannot represent is left out
	// with a finding of kind Lost. Without Lossy such a catalog is refused with a *[LossError].
	Lossy bool
	// Origins, unless nil, returns the upgrade edges that a bundle declares for itself. For other bundles the columns
	// are derived from their channels and ClusterServiceVersions.
	Origins func(pkg, bundle string) (declcfg.Origin, bool)
	// HeadManifests writes only the manifests of channel heads and of bundles without an image. The columns csv and
	// bundle of other bundles are NULL, as opm leaves them after an addition in mode semver or semver-skippatch.
	HeadManifests bool
	// AnyImages writes images that are not pull specs, see [Options].
	AnyImages bool
	// New lets [Replace] create a database if the file is missing or empty.
	New bool
	// Limits are those of later readers: what exceeds them is not written.
	Limits Limits
	// Wait is how long to wait for another writer of the same file; 10 seconds by default.
	Wait time.Duration
}

func (o WriteOptions) withDefaults() WriteOptions {
	o.Limits = o.Limits.withDefaults()
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	return o
}

// Written describes a written database.
type Written struct {
	Packages int `json:"packages"`
	Channels int `json:"channels"`
	Bundles  int `json:"bundles"`
	// Entries is the number of rows of table channel_entry.
	Entries int `json:"entries"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	// Findings list what the database represents differently from the catalog (kind Changed) or not at all (kind Lost),
	// sorted.
	Findings []Finding `json:"findings"`
}

// LossError reports a catalog that a database cannot represent without loss.
type LossError struct {
	// Findings are the losses, sorted; all are of kind Lost.
	Findings []Finding
}

// Error returns a message with the first losses.
func (e *LossError) Error() string {
	return strings.Join(append([]string{ErrLoss.Error()}, problem.Lines(e.Findings, 0, Finding.text)...), "\n  ")
}

// Unwrap returns [ErrLoss].
func (e *LossError) Unwrap() error { return ErrLoss }

// text formats a finding as one line.
func (f Finding) text() string {
	text := ""
	for _, part := range []struct{ label, value string }{{"package", f.Package}, {"channel", f.Channel},
		{"bundle", f.Bundle}, {"field", f.Field}} {
		if part.value != "" {
			text += part.label + " " + fault.Quote(part.value) + ", "
		}
	}
	if text == "" {
		return f.Reason
	}
	return text[:len(text)-2] + ": " + f.Reason
}

// Create writes an index database of schema version 13 with the blobs of a catalog, replacing any file at path. The
// blobs must be in writing order, such as those of [declcfg.Catalog.Blobs] and [DB.Blobs]; one package is in memory at
// a time, and of its manifests those of one bundle. The same blobs give the same bytes with the same version of the
// SQLite library.
//
// The database appears completely or not at all: after an error the old file is unchanged and no temporary file is
// left. A symbolic link at path is refused. While a database is being replaced, it is locked against other writers;
// concurrent writers of a new file wait for one another.
//
// The packages must be valid. Errors are joined, so that all invalid packages are named. Their classes are those of
// [declcfg.Catalog.Validate], *[LossError], ErrInvalid, ErrLimit, ErrLocked, ErrUnsupported for a file with a journal
// next to it, ErrWrite, and those of the file system and of the blobs.
func Create(ctx context.Context, path string, blobs iter.Seq2[declcfg.Blob, error],
	o WriteOptions) (_ *Written, err error) {
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

// Replace changes a database. It calls change with the open database; change returns the blobs of the new content,
// which may be read from the database until the last one has been taken. Other writers are locked out meanwhile. If
// change returns neither blobs nor an error, the file is unchanged and Written is nil.
//
// If there is no file, the error is fs.ErrNotExist; with [WriteOptions.New] change is called with nil instead. A
// concurrent call then waits and gets the new database.
//
// Content of the database that is not in its catalog, such as bundles in no channel, is not in the new file:
// [DB.Findings] lists it. Otherwise Replace works like [Create]. The file may have an older schema version; the new one
// has the last.
func Replace(ctx context.Context, path string, read Options, write WriteOptions,
	change func(context.Context, *DB) (iter.Seq2[declcfg.Blob, error], error)) (_ *Written, err error) {
	write = write.withDefaults()
	lock, err := lockForWriting(ctx, path, write.Wait)
	if err != nil {
		return nil, fmt.Errorf("write database %s: %w", fault.Quote(path), err)
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	var db *DB
	if !write.New || lock.stat != nil && lock.stat.Size() > 0 {
		// Open before locking: closing a descriptor of the file would release this process's locks on it.
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
