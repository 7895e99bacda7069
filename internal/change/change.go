package change

import (
	"context"
	"iter"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/sqlite"
)

// Kind is what a catalog is kept as.
type Kind string

// The kinds of catalogs.
const (
	Directory Kind = "directory"
	Database  Kind = "database"
)

// State is a catalog as an edit sees it. Nothing of it is to be modified.
type State struct {
	// Catalog has the packages of Edit.Whole with everything. Of the others it has the skeleton: their bundles are reduced
	// (see declcfg.Bundle.Reduce). A database's broken packages are in it as an olm.package blob and nothing else, so that
	// they can be removed; an edit that leaves one of them is refused.
	Catalog *declcfg.Catalog
	// Origins are the columns of a database; nil for file-based catalogs.
	Origins edit.Origins
	// Manifests are what the manifests of the bundles of Edit.Manifests say.
	Manifests edit.Manifests
	// Stranded are the bundles of a database that are in no channel, and so not in the catalog. An edit loses them.
	Stranded []sqlite.Stranded
	Kind     Kind
	// MetadataOnly reports whether the bundles of a package have olm.csv.metadata and no manifests. For a package that is not
	// there, or has no bundles with either, it is what most bundles of the catalog have.
	MetadataOnly func(pkg string) bool
}

// Edit is a change of a catalog.
type Edit struct {
	// Whole are the packages of which Apply needs the bundles with their manifests. All of them are in memory at once. Nil
	// means all packages, and an empty list none, which is enough for all functions of package edit but Merge.
	Whole []string
	// Manifests are the packages of which Apply needs State.Manifests: those that it adds bundles to.
	Manifests []string
	// Scope, unless nil, are the only packages whose bundles Apply looks into or changes. Of the bundles of others a state
	// may have names and images alone: these packages stay as they are, or go as a whole.
	Scope []string
	// Apply is called once. It returns the new catalog, made from that of the state by functions of package edit,
	// and their account. Packages that are in the account, or are not the same in both catalogs, are rewritten.
	Apply func(context.Context, *State) (*declcfg.Catalog, *edit.Account, error)
	// HeadManifests writes a database without the manifests of bundles that are no heads, see sqlite.WriteOptions.
	HeadManifests bool
	// Always writes a database even if the catalog in it does not change: for what its tables have beyond the catalog.
	Always bool
}

// Options say how an edit is carried out. The zero value is useful.
type Options struct {
	// Jobs is how many goroutines parse at the same time; 0 means one per processor.
	Jobs int
	// TempDir is where large intermediate data go; empty means the system's.
	TempDir string
	// DryRun does everything but change the catalog in place.
	DryRun bool
	// Lossy lets a database be written without what it has no place for.
	Lossy bool
	// Create takes a path where nothing is for an empty catalog of the kind New.
	Create bool
	// New is what is made where nothing is; empty means Database.
	New Kind
	// Format is that of the files of a new directory; empty means JSON.
	Format declcfg.Format
	// Wait is how long to wait for another edit of the same catalog; 0 means 10 seconds.
	Wait time.Duration
	// AnyImages takes images in databases that are no pull specs, as opm does, see sqlite.Options. It says nothing of what Apply
	// checks.
	AnyImages bool
	// KeepGoing leaves the broken packages of a database out of what is written. Without it they have to be removed.
	KeepGoing bool
	// Reuse lets a [Source] use the memory of a bundle's manifests again: a blob is valid until the next one is asked for.
	Reuse bool
	// Stored lets a [Source] give the manifests of a database in the order in which they are stored, for callers that write a
	// database again. Otherwise they are sorted, as in file-based catalogs.
	Stored bool
	// Dir, unless empty, is the directory that the files of a [Source] are in, see declcfg.LoadOptions.
	Dir string
	// Limits bound what is read of files, and Database of databases.
	Limits   declcfg.Limits
	Database sqlite.Limits
	// Warn is called for input that is accepted in a file but surely not meant. It may be called from several goroutines.
	Warn func(declcfg.Position, string)
}

// Result is what came of an edit.
type Result struct {
	Kind    Kind
	Account *edit.Account
	// Findings are what is to be known of how the catalog came out of a database.
	Findings []sqlite.Finding
	// Written is what a database was made of, with what it says otherwise than the catalog; nil if none was written. In a dry
	// run it is what would have been written.
	Written *sqlite.Written
	// Files are those of a directory that were written or removed, relative to it, sorted. In a dry run they would have been.
	Files []string
	// Removed are those of them that are no more.
	Removed []string
	// Unchanged is set if the edit changes nothing. Nothing was written then.
	Unchanged bool
	// Changed are the packages that are not what they were, new and removed ones included, sorted; the empty name stands for
	// blobs of no package.
	Changed []string
	// ChangedBlobs are the blobs of these packages alone, of an edit of a [Source]. They can be iterated over again.
	ChangedBlobs iter.Seq2[declcfg.Blob, error]
	// Origins are what the bundles of the result want of themselves, as far as it is known: for sqlite.WriteOptions.
	Origins func(pkg, bundle string) (sqlite.Origin, bool)
}
