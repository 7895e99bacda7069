package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Blob returns the olm.bundle blob of the bundle with the same bytes as opm: properties sorted by type and value, then
// the manifests sorted by their base64 text, and related images sorted by image. Only the first document of each file
// is included. image is the reference of the bundle's image; it may be empty.
//
// The blob shares no memory with the bundle. The error is [ErrInvalid].
func (b *Bundle) Blob(image string) (*declcfg.Bundle, error) {
	if b.CSV == nil {
		return nil, fmt.Errorf("%w: bundle missing csv: only bundles of the type %q can be in a catalog", ErrInvalid,
			RegistryV1)
	}
	properties, err := b.blobProperties()
	if err != nil {
		return nil, err
	}
	var scratch []byte
	objects := len(properties)
	csv := false
	for i := range b.Objects {
		o := &b.Objects[i]
		if !o.First() || o.Kind == kindCSV && csv {
			continue
		}
		csv = csv || o.Kind == kindCSV
		scratch = appendOpm(scratch[:0], o.JSON)
		properties = append(properties, declcfg.NewBundleObject(scratch))
	}
	slices.SortStableFunc(properties[objects:],
		func(x, y declcfg.Property) int { return bytes.Compare(x.Value, y.Value) })
	return &declcfg.Bundle{
		Name:          b.CSV.Name,
		Package:       b.Package,
		Image:         image,
		Properties:    properties,
		RelatedImages: b.blobImages(image),
		HasObjects:    true,
	}, nil
}

// blobProperties returns the properties without the manifests.
func (b *Bundle) blobProperties() ([]declcfg.Property, error) {
	w := propertyWriter{}
	own := property.Package{PackageName: b.Package, Version: b.CSV.Version, Release: b.CSV.Release}
	provided := b.provided
	var required []API

	var given []declcfg.Property
	for _, p := range b.Properties {
		given = append(given, declcfg.Property{Type: p.Type, Value: appendOpm(nil, p.Value)})
	}
	for _, p := range b.CSV.properties {
		given = append(given, declcfg.Property{Type: p.Type, Value: slices.Clone(p.Value)})
	}
	seen := map[string]bool{}
	for _, p := range given {
		if key := p.Type + "\x00" + string(p.Value); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		switch p.Type {
		case declcfg.PropertyPackage:
			w.decode(p, &own)
		case declcfg.PropertyGVK:
			var v property.GVK
			w.decode(p, &v)
			provided = append(provided[:len(provided):len(provided)],
				API{Group: v.Group, Version: v.Version, Kind: v.Kind})
		default:
			w.out = append(w.out, p)
		}
	}
	for _, d := range b.Dependencies {
		p := declcfg.Property{Type: d.Type, Value: appendOpm(nil, d.Value)}
		switch d.Type {
		case declcfg.PropertyGVK:
			var v property.GVK
			w.decode(p, &v)
			required = append(required, API{Group: v.Group, Version: v.Version, Kind: v.Kind})
		case declcfg.PropertyPackage:
			var v property.Package
			w.decode(p, &v)
			w.add(declcfg.PropertyPackageRequired,
				property.PackageRequired{PackageName: v.PackageName, VersionRange: v.Version})
		default:
			w.out = append(w.out, p)
		}
	}
	required = append(required, b.CSV.Required...)

	w.add(declcfg.PropertyPackage, own)
	w.apis(declcfg.PropertyGVK, provided)
	w.apis(declcfg.PropertyGVKRequired, required)
	slices.SortStableFunc(w.out, func(x, y declcfg.Property) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), bytes.Compare(x.Value, y.Value))
	})
	return w.out, w.err
}

// propertyWriter collects properties and keeps the first error.
type propertyWriter struct {
	out []declcfg.Property
	err error
}

func (w *propertyWriter) decode(p declcfg.Property, into any) {
	if err := json.Unmarshal(p.Value, into); err != nil && w.err == nil {
		w.err = fmt.Errorf("%w: value of the type %s: %s", ErrInvalid, fault.Quote(p.Type),
			fault.Clip(err.Error(), maxReason))
	}
}

func (w *propertyWriter) add(typ string, value any) {
	p, err := declcfg.NewProperty(typ, value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.out = append(w.out, p)
}

func (w *propertyWriter) apis(typ string, apis []API) {
	seen := map[property.GVK]bool{}
	for _, a := range apis {
		v := property.GVK{Group: a.Group, Kind: a.Kind, Version: a.Version}
		if !seen[v] {
			seen[v] = true
			w.add(typ, v)
		}
	}
}

// blobImages returns the images in the ClusterServiceVersion, that of the bundle, and those of the deployments.
func (b *Bundle) blobImages(image string) []declcfg.RelatedImage {
	var out []declcfg.RelatedImage
	seen := map[string]bool{"": true}
	for _, r := range b.CSV.RelatedImages {
		out = append(out, r)
		seen[r.Image] = true
	}
	for _, i := range append([]string{image}, b.CSV.Images...) {
		if !seen[i] {
			out = append(out, declcfg.RelatedImage{Image: i})
			seen[i] = true
		}
	}
	slices.SortStableFunc(out, func(x, y declcfg.RelatedImage) int { return cmp.Compare(x.Image, y.Image) })
	return out
}
