package appregistry

import (
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Options say how package manifests are read. The zero value is useful.
type Options struct {
	// KeepGoing leaves out the packages that are broken, and passes over files that nothing can be made of. Without it both
	// are errors.
	KeepGoing bool
	// Quarantined, unless nil, is called for every package that is left out, by name. The reason is an *[Error] or a
	// *[declcfg.ValidationError].
	Quarantined func(pkg string, reason error)
	// Warn, unless nil, is called for what is skipped. Calls do not overlap.
	Warn func(declcfg.Position, string)
	// Image, unless nil, makes the references of the images of bundles, which otherwise have none. It may be called by
	// several goroutines at once.
	Image func(*bundle.Bundle) (string, error)
	// Jobs is how many bundles are read at once; 0 means one per processor.
	Jobs   int
	Limits Limits
}

// Limits bound what is read. A zero field stands for its default.
type Limits struct {
	// Entries bounds the files and directories; 500,000 by default.
	Entries int
	// Bundles bounds the ClusterServiceVersions, and Packages the packages; 50,000 and 10,000 by default.
	Bundles, Packages int
	// Depth bounds the directories in directories; 32 by default.
	Depth int
	// Total bounds the manifests of all bundles, as JSON; 4 GiB by default.
	Total int64
	// Bundle bounds each bundle. Its File is the size of any file that is looked into.
	Bundle bundle.Limits
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		at    *int
		value int
	}{{&l.Entries, 500_000}, {&l.Bundles, 50_000}, {&l.Packages, 10_000}, {&l.Depth, 32}, {&l.Bundle.Depth, 100}} {
		if *d.at <= 0 {
			*d.at = d.value
		}
	}
	if l.Bundle.File <= 0 {
		l.Bundle.File = 4 << 20
	}
	if l.Total <= 0 {
		l.Total = 4 << 30
	}
	return l
}
