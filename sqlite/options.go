package sqlite

import (
	"cmp"
	"time"
)

// Compat selects whose answers to give where a better answer than opm's is known.
type Compat string

const (
	// CompatNone gives the best answer.
	CompatNone Compat = ""
	// CompatOPM gives the answer of the last opm that read databases, its omissions included.
	CompatOPM Compat = "opm"
)

// Options say how a database is read. The zero value is useful.
type Options struct {
	// Compat is whose answers to give.
	Compat Compat
	// AnyImages takes images that are no pull specs, as opm does where it reads databases, and so does CompatOPM.
	AnyImages bool
	// KeepGoing leaves out the packages that are broken, instead of failing. [DB.Findings] lists them with the reasons.
	KeepGoing bool
	// Repair repairs packages as [declcfg.Catalog.Repair] does, before they are checked. [DB.Findings] lists what was
	// changed.
	Repair bool
	// CSVOnly leaves out the manifests of bundles other than the ClusterServiceVersion, for callers that replace all of
	// them by an olm.csv.metadata property. Bundles that have such a property already keep theirs.
	CSVOnly bool
	// Reuse lets [DB.Blobs] use the memory of a bundle's manifests again: the properties of a bundle are valid only
	// until the next blob is asked for. It is for callers that write blobs and do not keep them.
	Reuse bool
	// Stored leaves the manifests of a bundle in the order in which they are stored, for callers that write a database
	// again. Otherwise they are sorted, as in file-based catalogs.
	Stored bool
	// Limits bound what a database may ask for.
	Limits Limits
	// TempDir is where a private copy goes if one is needed; empty means the system's.
	TempDir string
	// Jobs is how many goroutines parse manifests at the same time; 0 means one per processor.
	Jobs int
}

// Limits bound the resources that reading a database takes. Zero fields mean the defaults.
type Limits struct {
	// FileBytes is the largest database file; default 1 GiB.
	FileBytes int64
	// ValueBytes is the largest value of a column, such as all manifests of a bundle; default 32 MiB.
	ValueBytes int
	// Rows is the largest number of rows of all tables together; default 2,000,000.
	Rows int
	// TextBytes is the largest amount of text in the columns that are held in memory, which are all but the
	// manifests; default 64 MiB.
	TextBytes int64
	// Time is how long opening may take, and loading, and collecting facts; default 5 minutes each.
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
