package appregistry

import (
	"cmp"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Options configure reading. The zero value is useful.
type Options struct {
	// KeepGoing leaves out invalid packages and skips undecodable files. Without it both are errors.
	KeepGoing bool
	// Quarantined, unless nil, is called for every package that is left out, sorted by name. The reason is an *[Error]
	// or a *[declcfg.ValidationError].
	Quarantined func(pkg string, reason error)
	// Warn, unless nil, is called for what is skipped. Calls do not overlap.
	Warn func(declcfg.Position, string)
	// Image, unless nil, returns the image reference of a bundle; without it bundles have none. It may be called
	// concurrently.
	Image func(*bundle.Bundle) (string, error)
	// Jobs is how many bundles are read concurrently; 0 means one per processor.
	Jobs   int
	Limits Limits
}

// Limits bound what is read. A zero field means its default.
type Limits struct {
	// Entries is the maximum number of files and directories; 500,000 by default.
	Entries int
	// Bundles is the maximum number of ClusterServiceVersions, 50,000 by default, and Packages that of packages, 10,000
	// by default.
	Bundles, Packages int
	// Depth is the maximum nesting of directories; 32 by default.
	Depth int
	// Total is the maximum size of the manifests of all bundles as JSON; 4 GiB by default.
	Total int64
	// Bundle bounds each bundle. Its File also bounds any other file that is read.
	Bundle bundle.Limits
}

func (l Limits) withDefaults() Limits {
	l.Entries = cmp.Or(max(l.Entries, 0), 500_000)
	l.Bundles = cmp.Or(max(l.Bundles, 0), 50_000)
	l.Packages = cmp.Or(max(l.Packages, 0), 10_000)
	l.Depth = cmp.Or(max(l.Depth, 0), 32)
	l.Bundle.Depth = cmp.Or(max(l.Bundle.Depth, 0), 100)
	l.Bundle.File = cmp.Or(max(l.Bundle.File, 0), 4<<20)
	l.Total = cmp.Or(max(l.Total, 0), 4<<30)
	return l
}
