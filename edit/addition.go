package edit

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Name identifies a bundle in a catalog.
type Name struct{ Package, Bundle string }

// Origins are declared edges of bundles, from sources other than the catalog, such as the columns of a database.
type Origins map[Name]declcfg.Origin

// Addition is a bundle to add to a catalog.
type Addition struct {
	// Bundle is the blob, with name, package, image and the olm.package property.
	Bundle *declcfg.Bundle
	// Channels are the channels that the bundle declares. White space around a name is ignored.
	Channels []string
	// DefaultChannel is the default channel that the bundle declares for its package; empty if none.
	DefaultChannel string
	declcfg.Origin
	SkipRange string
	// Icon is used for packages without an icon; it may be nil.
	Icon *declcfg.Icon
}

// NewAddition returns the addition of a bundle that was read. image is the reference of its image; it may be empty.
func NewAddition(b *bundle.Bundle, image string) (Addition, error) {
	blob, err := b.Blob(image)
	if err != nil {
		return Addition{}, fmt.Errorf("bundle %s: %w", image, err)
	}
	a := Addition{
		Bundle:         blob,
		Channels:       slices.Clone(b.Channels),
		DefaultChannel: b.DefaultChannel,
		Origin: declcfg.Origin{Replaces: b.CSV.Replaces, Skips: slices.Clone(b.CSV.Skips),
			SubstitutesFor: b.CSV.SubstitutesFor},
		SkipRange: b.CSV.SkipRange,
	}
	a.Icon, _ = declcfg.NewIcon(b.CSV.IconData, b.CSV.IconMediaType) // none if that is impossible
	return a, nil
}

// Manifest has the values from a bundle's manifests that additions to its package need.
type Manifest struct {
	declcfg.Origin
	Icon *declcfg.Icon
	// CSV is set if there is a ClusterServiceVersion. If the catalog has only its metadata, nothing but SubstitutesFor
	// is known.
	CSV bool
}

// Manifests are values from manifests that a catalog lacks, because only its skeleton was read.
type Manifests map[Name]*Manifest

// ReadManifest reads the values from a bundle of a catalog; nil if it has none.
func ReadManifest(b *declcfg.Bundle) *Manifest {
	csv, err := b.CSV()
	if err != nil || csv == nil {
		if target := b.SubstitutesFor(); target != "" {
			return &Manifest{Origin: declcfg.Origin{SubstitutesFor: target}}
		}
		return nil
	}
	c := declcfg.ReadCSV(csv)
	m := &Manifest{CSV: true, Origin: c.Origin(), Icon: c.Icon()}
	m.Skips = clean(m.Skips)
	return m
}

// manifest returns the values for a bundle of the catalog; nil if nothing is known.
func (a *adder) manifest(b *declcfg.Bundle) *Manifest {
	if m, ok := a.options.Manifests[Name{b.Package, b.Name}]; ok {
		return m
	}
	return ReadManifest(b)
}
