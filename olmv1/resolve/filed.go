package resolve

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Catalog is one of the catalogs that a package is looked for in.
type Catalog struct {
	// Name is that of the ClusterCatalog. Messages have it.
	Name string
	// Priority is spec.priority: of two catalogs with a candidate, the one with the higher priority is used.
	Priority int32
	// Blobs are those of the catalog in its order, or those of the package alone, which is faster. They are read once
	// and are not kept. See [declcfg.Stream] and [declcfg.Catalog.Blobs].
	Blobs iter.Seq2[declcfg.Blob, error]
}

// filed is what a catalog has of a package, in the order in which OLM v1 reads it: it files each blob by schema and
// name, so that of two blobs with the same ones the last is left, and reads the files in the order of their names.
type filed struct {
	name     string
	priority int32
	// any is set if the catalog has a blob of the package.
	any            bool
	defaultChannel string
	bundles        []candidate
	versions       *versions.Sorted // of bundles, by their positions
	byName         map[string]*candidate
	channels       []channel
	// deprecations is the first blob of its kind; nil if there is none.
	deprecations *declcfg.Deprecations
}

// candidate is a bundle without what resolution does not look at.
type candidate struct {
	name, image string
	version     declcfg.VersionRelease
	// versionErr says why there is no version.
	versionErr error
	dependency string // see [Dependency]
	// prohibited is set if the bundle has the property olm.deprecated, which OLM v0 never installs.
	prohibited bool
	deprecated bool // by the first olm.deprecations blob
}

// channel is a channel with ranges that were parsed once.
type channel struct {
	name    string
	entries []entry
}

type entry struct {
	name, replaces string
	skips          []string
	// inRange is the skipRange. One that cannot be parsed has no versions.
	inRange versions.Range
	matches versions.Matches // those of filed.versions in it
}

func (e *entry) names(bundle string) bool {
	return e.replaces == bundle || slices.Contains(e.skips, bundle)
}

// file reads what a catalog has of a package.
func file(ctx context.Context, c *Catalog, pkg string, g Gates) (*filed, error) {
	f := &filed{name: c.Name, priority: c.Priority}
	bundles := map[string]candidate{}
	channels := map[string]channel{}
	deprecations := map[string]*declcfg.Deprecations{}
	if c.Blobs == nil {
		return f, nil
	}
	for blob, err := range c.Blobs {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("error getting package %q from catalog %q: %w", pkg, c.Name, err)
		}
		if blob.BlobPackage() != pkg {
			continue
		}
		f.any = true
		switch b := blob.(type) {
		case *declcfg.Package:
			f.defaultChannel = b.DefaultChannel
		case *declcfg.Bundle:
			bundles[fileName(b.Name)] = newCandidate(b, g)
		case *declcfg.Channel:
			channels[fileName(b.Name)] = newChannel(b)
		case *declcfg.Deprecations:
			deprecations[fileName(nameOf(b))] = b
		}
	}
	for _, name := range inFileOrder(deprecations) {
		f.deprecations = deprecations[name]
		break
	}
	deprecated := map[string]bool{}
	if f.deprecations != nil {
		for _, e := range f.deprecations.Entries {
			if e.Reference.Schema == declcfg.SchemaBundle {
				deprecated[e.Reference.Name] = true
			}
		}
	}
	for _, name := range inFileOrder(bundles) {
		b := bundles[name]
		b.deprecated = deprecated[b.name]
		f.bundles = append(f.bundles, b)
	}
	f.byName = make(map[string]*candidate, len(f.bundles))
	for i := range f.bundles {
		f.byName[f.bundles[i].name] = &f.bundles[i]
	}
	all := make([]semver.Version, len(f.bundles))
	for i := range f.bundles {
		all[i] = f.bundles[i].version.Version
	}
	f.versions = versions.Sort(all)
	for _, name := range inFileOrder(channels) {
		c := channels[name]
		for i := range c.entries {
			c.entries[i].matches = f.versions.In(c.entries[i].inRange)
		}
		f.channels = append(f.channels, c)
	}
	return f, nil
}

// skipping returns a function that reports whether the skipRange of an entry contains a version. It compares versions
// only for one that no bundle has.
func (f *filed) skipping(v semver.Version) func(*entry) bool {
	if at, ok := f.versions.Find(v); ok {
		return func(e *entry) bool { return e.matches.Has(at) }
	}
	return func(e *entry) bool { return e.inRange.Contains(v) }
}

// fileName is the name of the file in which OLM v1 keeps a blob.
func fileName(name string) string { return path.Clean(name + ".json") }

// inFileOrder returns names of files in the order of a walk: directory by directory.
func inFileOrder[V any](files map[string]V) []string {
	return slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
}

// nameOf returns the name of an olm.deprecations blob, which its schema does not have, or the schema.
func nameOf(d *declcfg.Deprecations) string {
	for _, f := range d.Unknown {
		var name string
		if f.Name == "name" && json.Unmarshal(f.Value, &name) == nil && name != "" {
			return name
		}
	}
	return declcfg.SchemaDeprecations
}

func newCandidate(b *declcfg.Bundle, g Gates) candidate {
	c := candidate{name: b.Name, image: b.Image}
	c.version, c.versionErr = versionOf(b, g)
	c.dependency, _ = Dependency(b)
	c.prohibited = slices.ContainsFunc(b.Properties, func(p declcfg.Property) bool {
		return p.Type == declcfg.PropertyDeprecated
	})
	return c
}

func newChannel(c *declcfg.Channel) channel {
	out := channel{name: c.Name, entries: make([]entry, len(c.Entries))}
	for i := range c.Entries {
		e := &c.Entries[i]
		inRange, _ := versions.ParseRange(e.SkipRange)
		out.entries[i] = entry{name: e.Name, replaces: e.Replaces, skips: e.Skips, inRange: inRange}
	}
	return out
}
