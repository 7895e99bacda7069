package filter

import (
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// reference parses the reference of an image in a catalog, which is in a registry.
func reference(text string) (imageset.Ref, error) {
	if strings.HasPrefix(text, imageset.OCI+"://") {
		return imageset.Ref{}, errLayout
	}
	r, err := imageset.ParseRef(text)
	if err == nil && r.Host == "" {
		err = errNoRegistry
	}
	return r, err
}

var (
	errLayout     = fault.New(fault.Input, "a catalog cannot name a layout of the machine that mirrors it")
	errNoRegistry = fault.New(fault.Input, "it names no registry")
)

// unusable reports the images that cannot be mirrored: related images that are malformed, or that have neither a tag
// nor a digest. The bundles that name them, which are returned, cannot be published: a run takes them out, see
// [Result.Without], or fails.
func unusable(bundles []declcfg.Bundle,
	report func(level Level, p Problem, format string, args ...any)) map[edit.Name]bool {
	bad := map[edit.Name]bool{}
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
				bad[edit.Name{Package: b.Package, Bundle: b.Name}] = true
				report(Warning, at, "bundle %s names an image that cannot be mirrored: %v", fault.Quote(b.Name), err)
			}
		}
	}
	return bad
}
