package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// The rules on the related images of a catalog's bundles that the released catalog does not have: those of Conforma's
// package olm (https://github.com/conforma/policy) and of Konflux' task validate-fbc. [RelatedAccessible] and
// [RelatedMediaType] need a registry: the caller runs them.
var (
	relatedRegistries = Rule{ID: "olm.allowed_registries_related", Severity: Error, Profiles: []Profile{Conforma},
		Scopes: onCatalogs, Title: "The name of each related image begins with a prefix of the rule data.",
		Fix:  "use an image of a permitted registry, or add its registry to the rule data",
		Data: "allowed_olm_image_registry_prefixes"}
	relatedPinned = Rule{ID: "olm.unpinned_related_images", Severity: Error, Profiles: []Profile{Conforma},
		Scopes: onCatalogs, Title: "Each related image has a digest.",
		Fix: "name the image as REPOSITORY@sha256:DIGEST"}
)

// unreleased reports whether the released catalog does not have a bundle.
func (b bundleCheck) unreleased() bool {
	if b.Released == nil {
		return true
	}
	return !slices.ContainsFunc(b.Released.Channels, func(c declcfg.Channel) bool {
		return c.Package == b.bundle.Package && slices.ContainsFunc(c.Entries, func(e declcfg.ChannelEntry) bool {
			return e.Name == b.bundle.Name
		})
	})
}

// findRelated has the rules on related images. The bundle's own image has rules of its own.
func findRelated(_ context.Context, b bundleCheck, emit Emit) {
	if !b.unreleased() {
		return
	}
	for i, r := range b.bundle.RelatedImages {
		if r.Image == "" || r.Image == b.bundle.Image {
			continue
		}
		path := []any{"relatedImages", i, "image"}
		repository, _ := splitTag(r.Image)
		prefixes := b.run.Data().ImagePrefixes
		if prefixes != nil && !slices.ContainsFunc(prefixes, func(p string) bool {
			return strings.HasPrefix(repository, p)
		}) {
			f := findingAt(b.bundle, path, fmt.Sprintf("The %q related image reference is not from an allowed registry.",
				r.Image))
			f.Rule = relatedRegistries.ID
			emit(f)
		}
		if !strings.Contains(r.Image, "@") {
			f := findingAt(b.bundle, path, fmt.Sprintf("The %q related image reference is not pinned.", r.Image))
			f.Rule = relatedPinned.ID
			emit(f)
		}
		if b.Related != nil {
			b.Related(r.Image, findingAt(b.bundle, path, ""))
		}
	}
}

// BeforeOpenShift reports whether the catalog is for an OpenShift version before another; false if it is not known.
func (s *CatalogSubject) BeforeOpenShift(major, minor int) bool {
	v := (&catalogCheck{CatalogSubject: s}).openShift()
	return v.known && !v.atLeast(major, minor)
}

// Find adds findings of rules that the caller has checked, and notes that they were.
func (r *Run) Find(rules []Rule, findings []Finding) {
	emit := r.emitOf(rules)
	for _, f := range findings {
		emit(f)
	}
}
