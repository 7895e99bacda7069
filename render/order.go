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
	rankX, keyX := sortKey(x)
	rankY, keyY := sortKey(y)
	return cmp.Or(cmp.Compare(px, py), cmp.Compare(rankX, rankY), cmp.Compare(keyX, keyY)) < 0
}

func sortKey(b declcfg.Blob) (rank int, key string) {
	rank = declcfg.Rank(b.BlobSchema())
	switch {
	case rank != declcfg.RankOther:
		return rank, b.BlobName()
	case b.BlobPackage() == "":
		return rank, "" // these keep the order of their references
	}
	return rank, b.BlobSchema()
}
