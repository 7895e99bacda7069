package sqlite

import (
	"cmp"
	"time"
)

// Compat selects whose answers to give if bindery's and opm's differ on purpose.
type Compat string

const (
	// CompatNone gives bindery's answer.
	CompatNone Compat = ""
	// CompatOPM gives the answer of the last opm that read databases, including its omissions.
	CompatOPM Compat = "opm"
)

// Options configure reading. The zero value is useful.
type Options struct {
	// Compat selects the answers.
	Compat Compat
	// AnyImages accepts images that are not pull specs, as opm does when it reads databases. CompatOPM implies it.
	AnyImages bool
	// KeepGoing leaves out invalid packages instead of failing. [DB.Findings] lists them with the reasons.
	KeepGoing bool
	// Repair repairs packages as [declcfg.Catalog.Repair] does before they are validated. [DB.Findings] lists the
	// changes.
	Repair bool
	// CSVOnly omits the manifests of bundles other than the ClusterServiceVersion, for callers that replace all of them
	// by an olm.csv.metadata property. Bundles with such a property keep all manifests.
	CSVOnly bool
	// Reuse lets [DB.Blobs] reuse the memory of a bundle's manifests: a bundle's properties are valid only until the
	// next blob. It is for callers that write blobs and do not keep them.
	Reuse bool
	// Stored returns the manifests of a bundle in stored order, for callers that write a database again. Otherwise they
	// are sorted, as in file-based catalogs.
	Stored bool
	// Limits bound what is read from a database.
	Limits Limits
	// TempDir is the directory for a private copy, if one is needed; empty means the system's.
	TempDir string
	// Jobs is how many goroutines parse manifests concurrently; 0 means one per processor.
	Jobs int
}

// Limits bound the resources for reading a database. Zero fields mean the defaults.
type Limits struct {
	// FileBytes is the maximum size of the database file; 1 GiB by default.
	FileBytes int64
	// ValueBytes is the maximum size of a column value, such as all manifests of a bundle; 32 MiB by default.
	ValueBytes int
	// Rows is the maximum number of rows of all tables together; 2,000,000 by default.
	Rows int
	// TextBytes is the maximum amount of text in columns held in memory, which excludes manifests; 64 MiB by default.
	TextBytes int64
	// Time is the maximum duration of opening, of loading, and of collecting facts; 5 minutes each by default.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	l.FileBytes = cmp.Or(l.FileBytes, 1<<30)
	l.ValueBytes = cmp.Or(l.ValueBytes, 32<<20)
	l.Rows = cmp.Or(l.Rows, 2_000_000)
	l.TextBytes = cmp.Or(l.TextBytes, 64<<20)
	l.Time = cmp.Or(l.Time, 5*time.Minute)
	return l
}
