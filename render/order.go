package render

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// finish normalises a blob, whatever it was read from: the manifests of a bundle become its last properties, related
// images are sorted, and the bundle is migrated to the requested level.
func finish(b declcfg.Blob, level edit.Level) error {
	bundle, ok := b.(*declcfg.Bundle)
	if !ok {
		return nil
	}
	slices.SortStableFunc(bundle.Properties,
		func(x, y declcfg.Property) int { return cmp.Compare(weight(x), weight(y)) })
	slices.SortStableFunc(bundle.RelatedImages,
		func(x, y declcfg.RelatedImage) int { return cmp.Compare(x.Image, y.Image) })
	return level.Apply(bundle)
}

// weight sorts properties with manifests after all others.
func weight(p declcfg.Property) int {
	if p.Type == declcfg.PropertyBundleObject || p.Type == declcfg.PropertyCSVMetadata {
		return 1
	}
	return 0
}

// before reports whether x is written before y: by package, blobs without a package last, then by kind, then by name,
// or by schema for unknown schemas.
func before(x, y declcfg.Blob) bool {
	px, py := x.BlobPackage(), y.BlobPackage()
	if (px == "") != (py == "") {
		return py == ""
	}
	kx, nx := rank(x)
	ky, ny := rank(y)
	return cmp.Or(cmp.Compare(px, py), cmp.Compare(kx, ky), cmp.Compare(nx, ny)) < 0
}

func rank(b declcfg.Blob) (kind int, name string) {
	switch b := b.(type) {
	case *declcfg.Package:
		return 0, ""
	case *declcfg.Channel:
		return 1, b.Name
	case *declcfg.Bundle:
		return 2, b.Name
	case *declcfg.Deprecations:
		return 4, ""
	default:
		if b.BlobPackage() == "" {
			return 3, "" // these keep the order of their references
		}
		return 3, b.BlobSchema()
	}
}
