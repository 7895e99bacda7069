package build

import (
	"context"
	"errors"
)

// Planned describes an image that has not been built: its layers as far as they are known without writing them.
type Planned struct {
	Layers []PlannedLayer `json:"layers"`
	Totals struct {
		// Layers is the number of layers of the platform with the most layers.
		Layers       int   `json:"layers"`
		Packages     int   `json:"packages"`
		Uncompressed int64 `json:"uncompressed"`
	} `json:"totals"`
}

// PlannedLayer is a layer of a plan.
type PlannedLayer struct {
	Kind LayerKind `json:"kind"`
	// Platform is the only platform with the layer, in the form OS/ARCHITECTURE; empty if all have it.
	Platform string `json:"platform,omitempty"`
	// Packages are the packages whose catalogs are in the layer, sorted.
	Packages []string `json:"packages,omitempty"`
	// Size is the compressed size of a base layer. Uncompressed is the size of the files of another layer, without the
	// caches, which are built when the layer is written.
	Size         int64 `json:"bytes,omitempty"`
	Uncompressed int64 `json:"uncompressed,omitempty"`
}

// Plan determines which layers [Catalog] would write. It reads the manifest and the configuration of the base, and
// writes only temporary files in o.Dir.
func (in CatalogInput) Plan(ctx context.Context, o Options) (_ *Planned, err error) {
	var s *blobSpool
	content, err := in.parts(ctx, &o, &s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	settled, err := settle(ctx, &o, "", content)
	if err != nil {
		return nil, err
	}
	return settled.planned(&o), closeBases(settled.bases)
}

// planned describes the layers.
func (s settled) planned(o *Options) *Planned {
	p := &Planned{Layers: []PlannedLayer{}}
	add := func(l PlannedLayer) {
		p.Layers = append(p.Layers, l)
		p.Totals.Uncompressed += l.Uncompressed
		p.Totals.Packages += len(l.Packages)
	}
	platforms := o.platforms()
	for i, platform := range platforms {
		only := ""
		if len(platforms) > 1 {
			only = PlatformName(platform)
		}
		below := 0
		if b := s.bases[i]; b != nil {
			for _, l := range b.layers {
				add(PlannedLayer{Kind: LayerBase, Platform: only, Size: l.Size})
			}
			below = len(b.layers)
		}
		if len(o.Servers) > 0 {
			add(PlannedLayer{Kind: LayerServer, Platform: only, Uncompressed: o.Servers[i].layer().Size()})
			below++
		}
		p.Totals.Layers = max(p.Totals.Layers, below+len(s.parts))
	}
	for _, part := range s.parts {
		add(PlannedLayer{Kind: part.kind, Packages: part.packages, Uncompressed: part.layer.Size()})
	}
	return p
}
