package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// opmPrefix begins the identifiers of the rules of opm on catalogs; the rest is the rule of package declcfg.
const opmPrefix = "catalog."

// opmTitles have a sentence and a fix for each rule of package declcfg.
var opmTitles = []struct{ rule, title, fix string }{
	{declcfg.RuleSyntax, "A file of the catalog is YAML or JSON with blobs.", "correct the YAML or JSON there"},
	{declcfg.RuleLimit, "A file, a value or a list is not larger than the limits of this program.", "make it smaller"},
	{declcfg.RuleObjects, "An olm.bundle.object property has a manifest.", "render the bundle again"},
	{declcfg.RulePackageName, "A package has a name, which is a DNS label.", "rename the package"},
	{declcfg.RuleChannelName, "A channel has a name.", "name the channel"},
	{declcfg.RuleUnknownPackage, "The package of a blob is in the catalog.", "add the olm.package blob"},
	{declcfg.RuleDuplicate, "Names of packages, channels, entries and bundles are unique.", "remove or rename one"},
	{declcfg.RuleProperty, "The value of a property is what its type demands.",
		"write the value in the form of its type: {packageName: etcd, version: 1.2.3} for olm.package"},
	{declcfg.RuleVersion, "A bundle has one olm.package property, with the package's name and a semantic version.",
		fixVersion},
	{declcfg.RuleImage, "An image has a valid name.",
		"write REGISTRY/REPOSITORY@DIGEST or REGISTRY/REPOSITORY:TAG, in lower case and without spaces"},
	{declcfg.RuleBundleChannel, "A bundle is an entry of a channel.", "add it to a channel, or remove it"},
	{declcfg.RuleEntryBundle, "An entry of a channel has a bundle.", "add the olm.bundle blob, or remove the entry"},
	{declcfg.RuleDefaultChannel, "A package has a default channel, which it has.", "set defaultChannel"},
	{declcfg.RuleEmpty, "A package has channels, and a channel has entries.", "add some, or remove it"},
	{declcfg.RuleGraph, "The entries of a channel have one head, and no cycle.",
		"let each entry but the head be replaced or skipped by another one, and none by itself in a circle"},
	{declcfg.RuleSkipRange, "A skipRange is a range of versions.", "write a range such as \">=1.0.0 <1.2.0\""},
	{declcfg.RuleDeprecation, "A deprecation names the package, a channel or a bundle that exists, and has a message.",
		"name one of the package's channels or bundles, and give a message"},
	{declcfg.RuleNoImage, "A bundle has an image.", "name the image, as --image-ref-template of \"catalog add\" does"},
	{declcfg.RuleReplaces, "The bundle that an entry replaces is an entry too.", "add the entry, or use skips"},
}

// FixOf says what to do about a problem of package declcfg.
func FixOf(rule string) string {
	for _, t := range opmTitles {
		if t.rule == rule {
			return t.fix
		}
	}
	return ""
}

func opmRules() []Rule {
	var out []Rule
	for _, t := range opmTitles {
		severity := Error
		if t.rule == declcfg.RuleReplaces || t.rule == declcfg.RuleNoImage {
			severity = Warning
		}
		out = append(out, Rule{ID: opmPrefix + t.rule, Severity: severity, Profiles: []Profile{OPM},
			Scopes: []Scope{OnCatalog}, Title: t.title, Fix: t.fix})
	}
	return out
}

// opm validates the catalog as opm validate does. The rule of Konflux is broken if any of its rules is.
func (c *catalogCheck) opm(ctx context.Context) error {
	rules := opmRules()
	if !c.run.Has(OPM) && !c.run.Wants(fbcValidate) {
		return nil
	}
	valid, err := declcfg.ValidateFS(ctx, c.FS, c.Load)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	emit := c.run.emitOf(rules)
	c.run.Ran(fbcValidate)
	var invalid *declcfg.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		return err
	}
	if err != nil {
		// A catalog that cannot be rendered, or has no package, breaks rules of their own: fbcRender, fbcNoPackage.
		if p := invalid.Problems[0]; p.Rule != declcfg.RuleSyntax && !c.noPackage {
			first, _, _ := strings.Cut(p.Text(), "\n")
			c.run.emitOf([]Rule{fbcValidate})(Finding{Message: "opm validate refuses the catalog: " + first,
				File: p.Position.File, Line: p.Position.Line, Column: p.Position.Column})
		}
		for _, p := range invalid.Problems {
			emit(findingOf(p))
		}
		return nil
	}
	for _, p := range valid.Notes {
		emit(findingOf(p))
	}
	return nil
}

// findingOf returns the finding of a problem, with the rule of opm.
func findingOf(p declcfg.Problem) Finding {
	return Finding{Rule: opmPrefix + p.Rule, Package: p.Package, Channel: p.Channel, Bundle: p.Bundle,
		File: p.Position.File, Line: p.Position.Line, Column: p.Position.Column, Message: p.Text()}
}

// findVersionNumbers finds numbers where OLM takes text: opm accepts them.
func findVersionNumbers(_ context.Context, b bundleCheck, emit Emit) {
	for i, p := range b.bundle.Properties {
		if p.Type == typeObject || p.Type == typeMetadata {
			continue // manifests
		}
		p.VersionNumbers(func(path []any, number string) {
			emit(findingAt(b.bundle, slices.Concat([]any{"properties", i, "value"}, path),
				fmt.Sprintf("the version %s of the property %q is a number", number, p.Type)))
		})
	}
}

func findTwice(_ context.Context, b bundleCheck, emit Emit) {
	seen := map[string]bool{}
	for i, p := range b.bundle.Properties {
		if p.Single() && seen[p.Type] {
			emit(findingAt(b.bundle, []any{"properties", i}, fmt.Sprintf("a second property %q", p.Type)))
		}
		seen[p.Type] = true
	}
}
