package rules

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

var v1 = []Profile{OLMv1}

// The rules that others name. Those of OLM v1 are shared by catalogs and bundles; their identifiers are those of the
// reasons in the account of installability.
var (
	RuleUnreadable = Rule{ID: "olmv1.unreadable", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog, OnBundle},
		Title: "OLM v1 can read the files.", Fix: "correct the YAML or JSON there, or move the file out: catalogd and operator-controller read all of the files"}
	ruleVersion = Rule{ID: "olmv1.version", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "The bundle has a property olm.package with a semantic version.", Fix: fixVersion}
	RuleDependency = Rule{ID: "olmv1.dependency", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog, OnBundle},
		Title: "The bundle has no dependency on packages, APIs or constraints.",
		Fix: "install what it needs by other means and remove the dependency from dependencies.yaml: OLM v1 has no " +
			"resolver of dependencies"}
	RuleInstallMode = Rule{ID: "olmv1.install-mode", Severity: Error, Profiles: v1,
		Scopes: []Scope{OnCatalog, OnBundle}, Title: "The bundle supports an install mode that the cluster offers.",
		Fix: "support AllNamespaces, or turn on the gate SingleOwnNamespaceInstallSupport in the cluster"}
	RuleAPIService = Rule{ID: "olmv1.api-service", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog, OnBundle},
		Title: "The bundle owns no API service.", Fix: "serve the API by a CustomResourceDefinition"}
	RuleUpgrade = Rule{ID: "olmv1.crd-upgrade", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog, OnBundle},
		Title: "An upgrade changes no CustomResourceDefinition in a way that OLM v1 refuses.",
		Fix: "undo the change, add a version of the definition with a conversion webhook for it, or let no entry lead " +
			"there; a ClusterExtension with spec.install.preflight.crdUpgradeSafety.enforcement: None does not ask"}

	// Those on related images, which the caller runs, as they need a registry.

	RelatedAccessible = Rule{ID: "olm.inaccessible_related_images", Severity: Error, Profiles: []Profile{Conforma},
		Scopes: onCatalogs, Title: "Each related image can be pulled.", Fix: "push the image, or mend its name"}
	RelatedMediaType = Rule{ID: "fbc:oci-media-type", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "Related images have Docker's media types before OpenShift 4.20.",
		Fix:   "push the image in Docker's format, such as with skopeo copy --format v2s2"}
)

// Gates are the gates of resolution.
func (s *CatalogSubject) gates() resolve.Gates { return resolve.Gates{BundleReleaseSupport: s.Release} }

// installability returns what is known of a bundle before its manifests.
func (p *packageCheck) installability(b *declcfg.Bundle) Installability {
	out := Installability{Package: b.Package, Bundle: b.Name, Image: b.Image, State: Unknown, Channels: []string{}}
	version, release, err := p.gates().Version(b)
	if err == nil {
		if out.Version = version; release != "" {
			out.Version += "+" + release
		}
	}
	in := p.membershipsOf(b.Name)
	out.Channels, out.Heads = append(out.Channels, in.channels...), in.heads
	return out
}

var bundleChecks = []Check[bundleCheck]{
	{[]Rule{RuleDependency}, findDependency},
	{[]Rule{ruleVersion}, findVersion},
	{[]Rule{RuleInstallMode, RuleAPIService}, findInMetadata},
	{[]Rule{{ID: "olmv1.unreachable", Severity: Warning, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "The bundle is an entry of a channel.",
		Fix:   "add it to a channel: no upgrade leads to it"}}, findUnreachable},
	{[]Rule{{ID: "catalog.version-number", Severity: Error, Profiles: []Profile{OPM},
		Scopes: []Scope{OnCatalog}, Title: "A version in a property is text and not a number.",
		Fix: "put it in quotes: the number 4.20 is 4.2"}}, findVersionNumbers},
	{[]Rule{{ID: "catalog.property-twice", Severity: Error, Profiles: []Profile{OPM},
		Scopes: []Scope{OnCatalog}, Title: "A property of which OLM uses none of two is there once.",
		Fix: "remove one"}}, findTwice},
	{[]Rule{fbcMetadata, fbcPinned, fbcRegistry}, findFragmentBundle},
	{[]Rule{relatedRegistries, relatedPinned, RelatedAccessible, RelatedMediaType}, findRelated},
}

// findDependency reports the first property that declares a dependency, as operator-controller does before it installs
// a bundle: it resolves no dependencies.
func findDependency(_ context.Context, b bundleCheck, emit Emit) {
	typ, ok := resolve.Dependency(b.bundle)
	if !ok {
		return
	}
	i := slices.IndexFunc(b.bundle.Properties, func(q declcfg.Property) bool { return q.Type == typ })
	emit(findingAt(b.bundle, []any{"properties", i}, fmt.Sprintf(
		"bundle %q has a dependency declared via property %q which is currently not supported", b.bundle.Name, typ)))
}

// findVersion reports a bundle whose first olm.package property has no version that operator-controller can parse.
func findVersion(_ context.Context, b bundleCheck, emit Emit) {
	if _, _, err := b.gates().Version(b.bundle); err != nil {
		var path []any
		if i := slices.IndexFunc(b.bundle.Properties, isPackage); i >= 0 {
			path = []any{"properties", i}
		}
		emit(findingAt(b.bundle, path, err.Error()))
	}
}

func isPackage(q declcfg.Property) bool { return q.Type == typePackage }

// findInMetadata reports what the values of olm.csv.metadata say of a bundle that operator-controller does not install:
// its install modes and API services. The manifests say the same, and are preferred.
func findInMetadata(_ context.Context, b bundleCheck, emit Emit) {
	i := slices.IndexFunc(b.bundle.Properties, func(q declcfg.Property) bool { return q.Type == typeMetadata })
	if i < 0 || b.manifests {
		return // the manifests say it, or nothing does
	}
	var m property.CSVMetadata
	if err := json.Unmarshal(b.bundle.Properties[i].Value, &m); err != nil {
		return // OLM v1 does not read it
	}
	path := []any{"properties", i}
	if len(m.APIServiceDefinitions.Owned) > 0 {
		f := findingAt(b.bundle, path, "unsupported bundle: apiServiceDefintions are not supported")
		f.Rule = RuleAPIService.ID
		emit(f)
	}
	if len(m.InstallModes) == 0 {
		return // the property has none if the manifest has none, or if it was made by an old program
	}
	supported := map[string]bool{}
	for _, mode := range m.InstallModes {
		supported[mode.Type] = supported[mode.Type] || mode.Supported
	}
	f := findingAt(b.bundle, path, "")
	f.Rule = RuleInstallMode.ID
	switch {
	case !b.SingleOwn && !supported["AllNamespaces"]:
		f.Message = "unsupported bundle: bundle does not support AllNamespaces install mode"
		emit(f)
	case b.SingleOwn && !supported["AllNamespaces"] && !supported["SingleNamespace"] && !supported["OwnNamespace"]:
		f.Message = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace " +
			"OwnNamespace] install modes"
		emit(f)
	}
}

func findUnreachable(_ context.Context, b bundleCheck, emit Emit) {
	if len(b.membershipsOf(b.bundle.Name).channels) == 0 {
		emit(findingAt(b.bundle, nil, fmt.Sprintf("bundle %q is in no channel of package %q", b.bundle.Name, b.name)))
	}
}

var packageChecks = []Check[*packageCheck]{
	{[]Rule{{ID: "olmv1.package-name", Severity: Error, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "The name of the package is a DNS subdomain.",
		Fix:   "rename the package: a ClusterExtension cannot ask for it"}}, findPackageName},
	{[]Rule{{ID: "olmv1.channel-name", Severity: Warning, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "The name of a channel is a DNS subdomain.",
		Fix:   "rename the channel: a ClusterExtension cannot ask for it"}}, findChannelName},
	{[]Rule{{ID: "olmv1.shadowed", Severity: Warning, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "No two bundles of a package have the same version and release.",
		Fix:   "give one of them another version: a ClusterExtension that asks for the version gets the first"}},
		findShadowed},
}

// dns1123 returns why a name is not a DNS-1123 subdomain.
func dns1123(name string) string {
	for _, text := range validation.IsDNS1123Subdomain(name) {
		return text
	}
	return ""
}

func findPackageName(_ context.Context, p *packageCheck, emit Emit) {
	if why := dns1123(p.name); why != "" {
		f := Finding{Package: p.name, Message: fmt.Sprintf("package name %q: %s", p.name, why)}
		if p.pkg != nil {
			f = findingAt(p.pkg, []any{"name"}, f.Message)
		}
		emit(f)
	}
}

func findChannelName(_ context.Context, p *packageCheck, emit Emit) {
	for _, c := range p.channels {
		if why := dns1123(c.Name); why != "" {
			emit(findingAt(c, []any{"name"}, fmt.Sprintf("channel name %q: %s", c.Name, why)))
		}
	}
}

func findShadowed(_ context.Context, p *packageCheck, emit Emit) {
	var bundles []declcfg.Bundle
	named := map[string]*declcfg.Bundle{}
	for _, b := range p.bundles {
		bundles = append(bundles, *b)
		if named[b.Name] == nil {
			named[b.Name] = b
		}
	}
	for _, group := range p.gates().Shadowed(bundles) {
		for _, other := range group[1:] {
			f := findingAt(named[other.Bundle], []any{"name"}, fmt.Sprintf(
				"bundle %q has the version %s of bundle %q, which is found first", other.Bundle,
				versionText(group[0]), group[0].Bundle))
			f.first = group[0].Bundle
			emit(f)
		}
	}
}

func versionText(s resolve.Step) string {
	if s.Release == "" {
		return s.Version
	}
	return s.Version + "+" + s.Release
}

var blobChecks = []Check[*catalogCheck]{
	{[]Rule{RuleUnreadable}, func(context.Context, *catalogCheck, Emit) {}}, // see catalogCheck.unreadable
	{[]Rule{{ID: "olmv1.overwritten", Severity: Warning, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "No two blobs have the same schema, package and name.",
		Fix:   "remove one of them: operator-controller keeps the last one only"}}, findOverwritten},
	{[]Rule{{ID: "olmv1.schema", Severity: Warning, Profiles: v1, Scopes: []Scope{OnCatalog},
		Title: "Each blob has a schema.",
		Fix:   "give it its schema, or remove it: catalogd serves it, and opm refuses the catalog"}}, findSchemaless},
	{[]Rule{ruleLifecycle}, findLifecycles},
}

// findOverwritten reports blobs that operator-controller does not see: it files the blobs of a catalog under their
// schema, package and name, and the last of one key remains.
func findOverwritten(_ context.Context, c *catalogCheck, emit Emit) {
	type key struct{ schema, pkg, name string }
	last := map[key]declcfg.IndexedDocument{}
	for _, d := range c.all {
		if d.Package == "" || d.Schema == "" {
			continue
		}
		k := key{d.Schema, d.Package, d.Name}
		if before, ok := last[k]; ok {
			f := Finding{Package: d.Package, File: before.File, Line: before.Line, Message: fmt.Sprintf(
				"the %s %q is overwritten by the one in %s", d.Schema, d.Name,
				Finding{File: d.File, Line: d.Line}.Place())}
			switch d.Schema {
			case declcfg.SchemaBundle:
				f.Bundle = d.Name
			case declcfg.SchemaChannel:
				f.Channel = d.Name
			}
			emit(f)
		}
		last[k] = d
	}
}

// findSchemaless reports blobs without a schema: catalogd stores them, and operator-controller takes them for no part
// of a package.
func findSchemaless(_ context.Context, c *catalogCheck, emit Emit) {
	for _, d := range c.all {
		if d.Schema == "" {
			emit(Finding{Package: d.Package, File: d.File, Line: d.Line,
				Message: fmt.Sprintf("the blob %q has no schema", d.Name)})
		}
	}
}

// fixVersion is what to do about the version of a bundle.
const fixVersion = "give the bundle one olm.package property with a version such as 1.2.3, without a leading v"

// unreadable reports why a catalog, or a package of it, cannot be read.
func (c *catalogCheck) unreadable(pkg string, err error) error {
	emit := c.run.emitOf([]Rule{RuleUnreadable})
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	for _, p := range invalid.Problems {
		f := findingOf(p)
		f.Rule = RuleUnreadable.ID
		f.Package = cmp.Or(f.Package, pkg)
		emit(f)
	}
	return nil
}
