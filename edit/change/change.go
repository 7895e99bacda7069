package change

import (
	"context"
	"iter"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/sqlite"
)

// Kind is the form in which a catalog is stored.
type Kind string

// The kinds of catalogs.
const (
	Directory Kind = "directory"
	Database  Kind = "database"
)

// State is the catalog that an edit receives. It must not be modified.
type State struct {
	// Catalog has the packages of Edit.Whole completely and skeletons of the others: their bundles are reduced (see
	// declcfg.Bundle.Reduce). An invalid package of a database is represented by an olm.package blob only, so that it
	// can be removed; an edit that leaves one in the catalog is refused.
	Catalog *declcfg.Catalog
	// Origins are column values of a database; nil for file-based catalogs.
	Origins edit.Origins
	// Manifests are values from the manifests of the bundles in Edit.Manifests.
	Manifests edit.Manifests
	// Stranded are the bundles of a database that are in no channel and therefore not in the catalog. An edit loses
	// them.
	Stranded []sqlite.Stranded
	Kind     Kind
	// MetadataOnly reports whether the bundles of a package have olm.csv.metadata instead of manifests. For a new
	// package, or one whose bundles have neither, it reports what most bundles of the catalog have.
	MetadataOnly func(pkg string) bool
}

// Edit is a change of a catalog.
type Edit struct {
	// Whole are the packages whose bundles Apply needs with manifests. All of them are in memory at once. Nil means all
	// packages; an empty list means none, which suffices for all functions of package edit except Merge.
	Whole []string
	// Manifests are the packages for which Apply needs State.Manifests: those that it adds bundles to.
	Manifests []string
	// Scope, unless nil, lists the only packages whose bundles Apply reads or changes. A state may have names and
	// images alone of other packages' bundles: these packages stay unchanged or are removed
	// entirely.
	Scope []string
	// Apply is called once. It returns the new catalog, made from the state's by functions of package edit, and their
	// account. Packages in the account, and packages that differ between the catalogs, are rewritten.
	Apply func(context.Context, *State) (*declcfg.Catalog, *edit.Account, error)
	// HeadManifests writes a database with the manifests of channel heads only, see sqlite.WriteOptions.
	HeadManifests bool
	// Always writes a database even if its catalog does not change: for edits of what only the tables contain.
	Always bool
}

// Options configure an edit. The zero value is useful.
type Options struct {
	// Jobs is how many goroutines parse concurrently; 0 means one per processor.
	Jobs int
	// DryRun does everything except changing the catalog.
	DryRun bool
	// Lossy allows writing a database without what it cannot represent.
	Lossy bool
	// Create treats a missing path as an empty catalog of the kind New.
	Create bool
	// New is the kind of a created catalog; empty means Database.
	New Kind
	// Format is the file format of a created directory; empty means JSON.
	Format declcfg.Format
	// Wait is how long to wait for another edit of the same catalog; 0 means 10 seconds.
	Wait time.Duration
	// AnyImages accepts bundle images in databases that are not valid pull specs, as opm does, see sqlite.Options. It
	// does not affect what Apply checks.
	AnyImages bool
	// KeepGoing leaves the invalid packages of a database out of the written one. Without it they must be removed.
	KeepGoing bool
	// Reuse lets a [Source] reuse the memory of a bundle's manifests: a blob is valid until the next one.
	Reuse bool
	// Dir, unless empty, is the directory with the files of a [Source], see declcfg.LoadOptions.
	Dir string
	// Warn is called for accepted but probably unintended input in a file. It may be called concurrently.
	Warn func(declcfg.Position, string)
}

// Result is the outcome of an edit.
type Result struct {
	Kind    Kind
	Account *edit.Account
	// Findings are remarks about reading the catalog from a database.
	Findings []sqlite.Finding
	// Written describes the written database and where it differs from the catalog; nil if none was written. In a dry
	// run it describes the database that would be written.
	Written *sqlite.Written
	// Files are the files of a directory that were written or removed, relative to it, sorted. In a dry run they would
	// be.
	Files []string
	// Removed are those of Files that were removed.
	Removed []string
	// Unchanged is set if the edit changes nothing. Nothing was written then.
	Unchanged bool
	// Changed are the packages that changed, including new and removed ones, sorted; the empty name stands for blobs
	// without a package.
	Changed []string
	// ChangedBlobs are the blobs of the changed packages, for an edit of a [Source]. They can be iterated over
	// repeatedly.
	ChangedBlobs iter.Seq2[declcfg.Blob, error]
	// Origins returns the upgrade edges that a bundle of the result declares for itself, if known: for
	// sqlite.WriteOptions.
	Origins func(pkg, bundle string) (declcfg.Origin, bool)
}
