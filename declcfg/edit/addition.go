package edit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Origin is what a bundle wants of itself. Channels of file-based catalogs keep the edges that came of it, in each
// channel, and not the wish.
type Origin struct {
	Replaces       string
	Skips          []string
	SubstitutesFor string
}

// Name names a bundle in a catalog.
type Name struct{ Package, Bundle string }

// Origins are what is known of bundles beyond the catalog that they are in, such as the columns of a database.
type Origins map[Name]Origin

// Addition is a bundle that is to be added to a catalog.
type Addition struct {
	// Bundle is the blob, with name, package, image and the olm.package property.
	Bundle *declcfg.Bundle
	// Channels are those that the bundle wants to be in. White space around a name does not belong to it.
	Channels []string
	// DefaultChannel is what the bundle says that its package's should be; empty if it says nothing.
	DefaultChannel string
	Origin
	SkipRange string
	// Icon is for packages that have none yet; it may be nil.
	Icon *declcfg.Icon
}

// NewAddition makes an addition of a bundle that was read. image is the reference to its image; it may be empty.
func NewAddition(b *bundle.Bundle, image string) (Addition, error) {
	blob, err := b.Blob(image)
	if err != nil {
		return Addition{}, fmt.Errorf("bundle %s: %w", image, err)
	}
	a := Addition{
		Bundle:         blob,
		Channels:       slices.Clone(b.Channels),
		DefaultChannel: b.DefaultChannel,
		Origin:         Origin{Replaces: b.CSV.Replaces, Skips: slices.Clone(b.CSV.Skips), SubstitutesFor: b.CSV.SubstitutesFor},
		SkipRange:      b.CSV.SkipRange,
	}
	a.Icon = newIcon(b.CSV.IconData, b.CSV.IconMediaType)
	return a, nil
}

// newIcon makes an icon of what a ClusterServiceVersion has; nil if it cannot be decoded.
func newIcon(encoded, mediaType string) *declcfg.Icon {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || len(data) == 0 {
		return nil
	}
	return &declcfg.Icon{Data: data, MediaType: mediaType}
}

// Manifest is what the manifests of a bundle in a catalog say, as far as additions to its package need it.
type Manifest struct {
	Origin
	Icon *declcfg.Icon
	// CSV is set if there is a ClusterServiceVersion. Where the catalog has only the metadata of one, nothing but
	// SubstitutesFor is known.
	CSV bool
}

// Manifests are what is known of bundles whose manifests a catalog lacks, because only its skeleton was read.
type Manifests map[Name]*Manifest

// ReadManifest reads what the ClusterServiceVersion of a bundle in a catalog declares; nil without one.
func ReadManifest(b *declcfg.Bundle) *Manifest {
	csv, err := b.CSV()
	if err != nil || csv == nil {
		if target := b.SubstitutesFor(); target != "" {
			return &Manifest{Origin: Origin{SubstitutesFor: target}}
		}
		return nil
	}
	var v struct {
		Metadata struct {
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Replaces string   `json:"replaces"`
			Skips    []string `json:"skips"`
			Icon     []struct {
				Data      string `json:"base64data"`
				MediaType string `json:"mediatype"`
			} `json:"icon"`
		} `json:"spec"`
	}
	if json.Unmarshal(csv, &v) != nil {
		return nil
	}
	m := &Manifest{CSV: true, Origin: Origin{Replaces: v.Spec.Replaces, Skips: clean(v.Spec.Skips)}}
	m.SubstitutesFor, _ = v.Metadata.Annotations[declcfg.AnnotationSubstitutesFor].(string)
	if len(v.Spec.Icon) > 0 {
		m.Icon = newIcon(v.Spec.Icon[0].Data, v.Spec.Icon[0].MediaType)
	}
	return m
}

// manifest is what is known of a bundle that the catalog has; nil if nothing is.
func (a *adder) manifest(b *declcfg.Bundle) *Manifest {
	if m, ok := a.options.Manifests[Name{b.Package, b.Name}]; ok {
		return m
	}
	return ReadManifest(b)
}
