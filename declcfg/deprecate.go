package declcfg

import (
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
)

// deprecate attaches the deprecations of the catalog to the nodes that they name.
func (b *graphBuilder) deprecate(all []Deprecations) {
	seen := map[string]bool{}
	for i := range all {
		d := &all[i]
		pkg := b.graph.byName[d.Package]
		switch {
		case d.Package == "":
			b.report(d, RuleDeprecation, "package name must be set for deprecation item %d", i)
			continue
		case pkg == nil:
			b.report(d, RuleUnknownPackage, "cannot apply deprecations to an unknown package %q", d.Package)
			continue
		case seen[d.Package]:
			b.report(d, RuleDuplicate, "expected a maximum of one deprecation per package: %q", d.Package)
			continue
		}
		seen[d.Package] = true
		references := map[Reference]bool{}
		for j := range d.Entries {
			if message := deprecateEntry(pkg, &d.Entries[j], j, references); message != "" {
				b.reportAt(d, []any{"entries", j}, RuleDeprecation, "%s", errors.New(message))
			}
		}
	}
}

// deprecateEntry applies one entry, or returns why it cannot.
func deprecateEntry(pkg *PackageNode, e *DeprecationEntry, index int, seen map[Reference]bool) string {
	ref := e.Reference
	if ref.Schema == "" {
		return fmt.Sprintf("schema must be set for deprecation entry [%d] for package %q", index, pkg.Name)
	}
	if seen[ref] {
		return fmt.Sprintf("duplicate deprecation entry %s for package %q", referenceText(ref), pkg.Name)
	}
	seen[ref] = true
	switch ref.Schema {
	case SchemaBundle:
		bundle := pkg.bundles[ref.Name]
		if bundle == nil {
			return fmt.Sprintf("cannot deprecate bundle %q for package %q: bundle not found", fault.Short(ref.Name),
				pkg.Name)
		}
		bundle.Deprecation = &e.Message
	case SchemaChannel:
		channel := pkg.channels[ref.Name]
		if channel == nil {
			return fmt.Sprintf("cannot deprecate channel %q for package %q: channel not found", fault.Short(ref.Name),
				pkg.Name)
		}
		channel.Deprecation = &e.Message
	case SchemaPackage:
		if ref.Name != "" {
			return fmt.Sprintf("package name must be empty for deprecated package %q (specified %q)", pkg.Name,
				fault.Short(ref.Name))
		}
		pkg.Deprecation = &e.Message
	default:
		return fmt.Sprintf("cannot deprecate object %s referenced by entry %d for package %q: object schema unknown",
			referenceText(ref), index, pkg.Name)
	}
	return ""
}

// referenceText formats a reference as in opm's messages, which scripts parse.
func referenceText(r Reference) string {
	return fmt.Sprintf("declcfg.PackageScopedReference{Schema:%q, Name:%q}", fault.Short(r.Schema), fault.Short(r.Name))
}
