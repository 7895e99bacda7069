package filter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// BundleName identifies a bundle.
type BundleName struct{ Package, Bundle string }

// Image is an image that kept bundles have or name.
type Image struct {
	Ref imageset.Ref
	// Written is the reference as the catalog has it. Images are told apart by it.
	Written string
	// Bundle is set for the images of bundles themselves; others are related images.
	Bundle bool
	// Bundles are those that name the image, in the order of the catalog.
	Bundles []BundleName
}

// AllImages returns the images of the bundles in the catalog to be published, each once, in the order of the catalog:
// the bundle's own image first, whether or not it is among the related images. Empty references are left out, and so
// are those that cannot be mirrored, for which there is a problem [UnusableImage].
func (r *Result) AllImages() []Image { return imagesOf(r.Catalog.Bundles) }

func imagesOf(bundles []declcfg.Bundle) []Image {
	var out []Image
	at := map[string]int{}
	add := func(b *declcfg.Bundle, written string, own bool) {
		name := BundleName{b.Package, b.Name}
		i, known := at[written]
		if !known {
			ref, err := reference(written)
			if written == "" || err != nil {
				return
			}
			i = len(out)
			at[written] = i
			out = append(out, Image{Ref: ref, Written: written})
		}
		out[i].Bundle = out[i].Bundle || own
		if n := len(out[i].Bundles); n == 0 || out[i].Bundles[n-1] != name {
			out[i].Bundles = append(out[i].Bundles, name)
		}
	}
	for i := range bundles {
		b := &bundles[i]
		add(b, b.Image, true)
		for _, related := range b.RelatedImages {
			add(b, related.Image, related.Image == b.Image)
		}
	}
	return out
}

// reference parses the reference of an image in a catalog, which is in a registry.
func reference(text string) (imageset.Ref, error) {
	if strings.HasPrefix(text, imageset.OCI+"://") {
		return imageset.Ref{}, errLayout
	}
	return imageset.ParseRef(text)
}

var errLayout = fault.New(fault.Input, "a layout of another machine")

// unusable reports the images that cannot be mirrored: related images that are malformed, or that have neither a tag
// nor a digest. The bundles that name them, which are returned, cannot be published, see [Result.Without].
func unusable(bundles []declcfg.Bundle,
	report func(level Level, p Problem, format string, args ...any)) map[BundleName]bool {
	bad := map[BundleName]bool{}
	for i := range bundles {
		b := &bundles[i]
		at := Problem{Code: UnusableImage, Package: b.Package, Bundle: b.Name}
		seen := map[string]bool{}
		for _, image := range append([]declcfg.RelatedImage{{Image: b.Image}}, b.RelatedImages...) {
			if seen[image.Image] {
				continue
			}
			seen[image.Image] = true
			if image.Image == "" {
				if image.Name != "" {
					report(Warning, Problem{Code: EmptyImage, Package: b.Package, Bundle: b.Name},
						"the related image %s of bundle %s is empty, and left out", fault.Quote(image.Name),
						fault.Quote(b.Name))
				}
				continue
			}
			if _, err := reference(image.Image); err != nil {
				bad[BundleName{b.Package, b.Name}] = true
				report(Failure, at, "bundle %s names an image that cannot be mirrored: %v", fault.Quote(b.Name), err)
			}
		}
	}
	return bad
}

// Unusable returns the bundles with a problem [UnusableImage], each once, with the problem's text.
func (r *Result) Unusable() map[BundleName]string {
	out := map[BundleName]string{}
	for _, p := range r.Problems {
		if p.Code == UnusableImage {
			name := BundleName{p.Package, p.Bundle}
			out[name] = cmp.Or(out[name], p.Text)
		}
	}
	return out
}

// sortedNames returns the keys sorted.
func sortedNames(m map[BundleName]string) []BundleName {
	names := make([]BundleName, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b BundleName) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle))
	})
	return names
}
