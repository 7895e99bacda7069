package edit

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Level is a migration level: which conversions to newer forms are applied to the bundles of a catalog. A level
// includes all migrations up to its own. The empty Level is LevelNone.
type Level string

// The levels, as opm names them.
const (
	LevelNone        Level = "none"
	LevelCSVMetadata Level = "bundle-object-to-csv-metadata"
	// LevelLatest includes all others.
	LevelLatest = LevelCSVMetadata
)

// migration is one conversion of a level.
type migration struct {
	level Level
	apply func(*declcfg.Bundle) error
}

// migrations returns all conversions in the order in which they are applied.
func migrations() []migration {
	return []migration{
		{LevelNone, func(*declcfg.Bundle) error { return nil }},
		{LevelCSVMetadata, bundleObjectToCSVMetadata},
	}
}

// Levels returns the known levels, each of which includes those before it.
func Levels() []Level {
	var levels []Level
	for _, m := range migrations() {
		levels = append(levels, m.level)
	}
	return levels
}

// ParseLevel returns the level with that name. The empty name is LevelNone.
func ParseLevel(name string) (Level, error) {
	if name == "" {
		return LevelNone, nil
	}
	if l := Level(name); slices.Contains(Levels(), l) {
		return l, nil
	}
	return "", fault.Advise(fmt.Errorf("unknown migration level %q", name), fmt.Sprintf("the levels are %v", Levels()))
}

// Includes reports whether l includes the conversions of o.
func (l Level) Includes(o Level) bool {
	levels := Levels()
	return max(slices.Index(levels, l), 0) >= slices.Index(levels, o)
}

// Apply migrates a bundle to the level. Applying a level again changes nothing. If it returns an error, the bundle is
// unchanged.
func (l Level) Apply(b *declcfg.Bundle) error {
	if _, err := ParseLevel(string(l)); err != nil {
		return err
	}
	for _, m := range migrations() {
		if !l.Includes(m.level) {
			break
		}
		if err := m.apply(b); err != nil {
			return fmt.Errorf("bundle %q: migrate to %s: %w", b.Name, m.level, err)
		}
	}
	return nil
}

// bundleObjectToCSVMetadata replaces the manifests of a bundle by the metadata of its ClusterServiceVersion. A bundle
// without an image keeps its manifests, because they exist nowhere else.
func bundleObjectToCSVMetadata(b *declcfg.Bundle) error {
	if b.Image == "" || slices.ContainsFunc(b.Properties, hasType(declcfg.PropertyCSVMetadata)) {
		return nil
	}
	object, err := b.CSV()
	if err != nil {
		return err
	}
	if object == nil {
		return nil
	}
	metadata, err := property.CSVMetadataOf(object)
	if err != nil {
		return err
	}
	replacement, err := declcfg.NewProperty(declcfg.PropertyCSVMetadata, metadata)
	if err != nil {
		return err
	}
	kept := make([]declcfg.Property, 0, len(b.Properties))
	for _, p := range b.Properties {
		if p.Type != declcfg.PropertyBundleObject {
			kept = append(kept, p)
		}
	}
	b.Properties = append(kept, replacement)
	b.HasObjects = false
	return nil
}

func hasType(typ string) func(declcfg.Property) bool {
	return func(p declcfg.Property) bool { return p.Type == typ }
}
