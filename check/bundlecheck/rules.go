package bundlecheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// Subject is a bundle that rules look at.
type Subject struct {
	// FS has the bundle's root, from which Bundle was read.
	FS     fs.FS
	Bundle *bundle.Bundle
	// Image is the image that the bundle is in; nil for a directory.
	Image *rules.Image
	// Settings are those of the cluster for OLM v1.
	Settings manifests.Settings
	// APIs are those of its Kubernetes; nil: of the current version.
	APIs *APIs
	// Package and Name, unless empty, are those of the bundle in a catalog, which findings then have; Pulled is its
	// image, in which their files are.
	Package, Name, Pulled string

	lines *bundlefs.Locator // nil: none yet
	// problems are those of [Run], for a bundle that OLM v1 cannot read.
	problems []bundle.Problem
}

// names returns the package and the name of the bundle for findings.
func (s *Subject) names() (pkg, name string) {
	if s.Name != "" || s.Bundle == nil {
		return s.Package, s.Name
	}
	if s.Bundle.CSV != nil {
		name = s.Bundle.CSV.Name
	}
	return s.Bundle.Package, name
}

// BundleRules returns the rules on bundles.
func BundleRules() []rules.Rule {
	return slices.Concat(ownRules(), rules.RulesOf(olmv1Checks), rules.RulesOf(conformaChecks), SnapshotRules())
}

// CheckRules runs the rules on a bundle. Its findings are in r; the error is that of the context.
func CheckRules(ctx context.Context, r *rules.Run, s Subject) error {
	s.lines = bundlefs.NewLocator(s.FS) // for all rules
	if err := runOwnChecks(ctx, r, s); err != nil {
		return err
	}
	if err := conforma(ctx, r, s); err != nil {
		return err
	}
	if err := OLMv1(ctx, r, s); err != nil {
		return err
	}
	if r.Has(rules.OLMv1) && s.Name == "" && s.Bundle.CSV != nil {
		pkg, name := s.names()
		from := rules.FromDirectory
		if s.Image != nil {
			from = rules.FromImage
		}
		r.SetBundle(rules.Installability{Package: pkg, Bundle: name, Version: s.Bundle.CSV.Version,
			Channels: slices.Concat([]string{}, s.Bundle.Channels), State: rules.Installable, Manifests: from})
	}
	return nil
}

// seeMessage is the fix of a rule whose messages say it.
const seeMessage = "see the message"

// ownPrefix begins the identifiers of the rules of [Run].
const ownPrefix = "bundle."

// ownTitles have the rules of [Run] and of reading a bundle, each with a sentence and a fix. An identifier ends before
// the slash in the rule of a problem: the validators of the library have many of their own.
var ownTitles = []struct{ rule, title, fix string }{
	{"annotation-empty", "An annotation of annotations.yaml has a value.", "give it one"},
	{"annotation-missing", "annotations.yaml has the annotations of a bundle.", "add it; bindery bundle generate does"},
	{"annotations", "The bundle has metadata/annotations.yaml.", "bindery bundle generate writes it"},
	{"annotations-size", "The annotations of an object are not too large for the API server.", "shorten them"},
	{"annotations-two", "One file has the annotations.", "remove the others"},
	{"bundle", "The manifests are consistent with each other.", seeMessage},
	{"channel-empty", "A channel has a name.", "remove the comma"},
	{"channel-space", "The name of a channel has no spaces around it.", "remove them"},
	{"channel-twice", "A channel is named once.", "remove one"},
	{"chart", "A Helm bundle has a chart.", seeMessage},
	{"configmap-size", "The bundle fits into the ConfigMap that OLM unpacks it to.",
		"shorten descriptions and schemas"},
	{"constraint-invalid", "A constraint is valid.", "mend the expression"},
	{"crd", "CustomResourceDefinitions are valid.", seeMessage},
	{"crd-missing", "A CRD that the ClusterServiceVersion owns is among the manifests.", "add it"},
	{"crd-not-owned", "A CRD among the manifests is owned by the ClusterServiceVersion.", "add it to owned"},
	{"crd-rules", "A definition has not too many validation rules.", "make them fewer"},
	{"crd-schema", "The schema of a CRD is structural.", seeMessage},
	{"crd-v1beta1", "A CRD is of the version v1.", "convert it: clusters since 1.22 refuse v1beta1"},
	{"crd-twice", "A CRD is defined once.", "remove one"},
	{"csv", "The ClusterServiceVersion is valid.", seeMessage},
	{"csv-missing", "The manifests have a ClusterServiceVersion.", "add it"},
	{"csv-second", "The manifests have one ClusterServiceVersion.", "remove the other"},
	{"default-channel", "The default channel is one of the channels.", seeMessage},
	{"default-channel-unset", "A bundle of several channels names the default channel.", seeMessage},
	{"dependency", "dependencies.yaml is valid.", seeMessage},
	{"dependency-invalid", "An entry of dependencies.yaml has the value that its type demands.", seeMessage},
	{"dependency-type", "A dependency has a type that OLM knows.", seeMessage},
	{"directory", "Manifests and metadata have the directories that the annotations name.", seeMessage},
	{"documents", "A manifest has one object.", "split the file: OLM v0 reads the first only"},
	{"duplicate-key", "A key occurs once in an object.", "remove one"},
	{"file", "All files are regular files.", "write the file itself"},
	{"kind", "OLM can install the kind of an object.", seeMessage},
	{"label", "Labels of the image are equal to the annotations.", "build the image again"},
	{"limit", "A file, a value or a list is not larger than the limits of this program.", "make it smaller"},
	{"media-type", "The media type is that of the content.", "mend the annotation"},
	{"name", "Names are valid.", seeMessage},
	{"namespace", "Objects have no namespace that OLM would replace.", "remove it"},
	{"no-objects", "A manifest has an object.", "remove the file"},
	{"object-invalid", "An object is valid.", seeMessage},
	{"object-list", "A manifest is no list.", "split it"},
	{"object-metadata", "An object has the metadata that it needs.", seeMessage},
	{"object-size", "An object is not too large for the API server.", "make it smaller"},
	{"object-twice", "An object is in the manifests once.", "remove one"},
	{"property", "A property is valid.", seeMessage},
	{"property-twice", "A property of which OLM uses none of two is there once.", "remove one"},
	{"related-image", "An image that a container is given is among the related images.",
		"add it to spec.relatedImages"},
	{"sub-directory", "The manifests have no directories.", "move the files up"},
	{"syntax", "A file is valid YAML or JSON.", "mend the file"},
	{"timeout", "The bundle can be checked in time.", "make it smaller"},
	{"version-number", "A version is text and not a number.", "put it in quotes"},
	{"validator-failed", "Each validator comes to an end.", "report the bundle"},
}

// ownWarnings are those of ownTitles that are never errors.
var ownWarnings = []string{"channel-space", "channel-twice", "crd-not-owned", "crd-rules", "crd-schema", "crd-v1beta1",
	"default-channel-unset", "label", "name", "namespace", "object-list", "related-image"}

// ownErrors are those of ownTitles that are warnings of [Run] and errors of a check, which is for pipelines: nothing
// refuses the bundle, and it does not do what its author means.
var ownErrors = []string{"default-channel", "property-twice", "version-number"}

var onBundles = []rules.Scope{rules.OnBundle}

// ownRules returns the rules of [Run].
func ownRules() []rules.Rule {
	var out []rules.Rule
	for _, t := range ownTitles {
		r := rules.Rule{ID: ownPrefix + t.rule, Severity: rules.Error,
			Profiles: []rules.Profile{rules.OPM}, Scopes: onBundles, Title: t.title, Fix: t.fix}
		if slices.Contains(ownWarnings, t.rule) {
			r.Severity = rules.Warning
		}
		out = append(out, r)
	}
	return out
}

// Fix says what to do about a problem of [Run], as far as its rule has a sentence for it.
func Fix(rule string) string {
	for _, t := range ownTitles {
		if t.rule == ruleOf(rule) {
			return t.fix
		}
	}
	return seeMessage
}

// ruleOf returns the first part of the rule of a problem.
func ruleOf(rule string) string {
	first, _, _ := strings.Cut(rule, "/")
	return first
}

// runOwnChecks runs the checks of [Run] for the profiles that have them.
func runOwnChecks(ctx context.Context, r *rules.Run, s Subject) error {
	if !r.Has(rules.OPM) {
		return nil
	}
	o := Options{Jobs: 1}
	if s.Image != nil {
		o.Labels = s.Image.Labels
	}
	report, err := Run(ctx, s.FS, s.Bundle, o)
	if err != nil {
		return err
	}
	pkg, name := s.names()
	find := func(_ context.Context, _ *Subject, emit rules.Emit) {
		for _, p := range report.Problems {
			f := rules.Finding{Rule: ownPrefix + ruleOf(p.Rule), Severity: rules.Severity(p.Severity), Package: pkg,
				Bundle: name, File: p.File, Line: p.Line, Column: p.Column, Field: p.Field, Message: p.Message}
			if slices.Contains(ownErrors, p.Rule) {
				f.Severity = rules.Error
			}
			emit(f)
		}
	}
	return rules.Each(ctx, r, []rules.Check[*Subject]{{Rules: ownRules(), Find: find}}, &s)
}

// Unreadable reports a bundle that cannot be read at all. As a warning it does not mean that OLM v1 refuses the bundle.
func Unreadable(ctx context.Context, r *rules.Run, s Subject, err error, severity rules.Severity) error {
	find := func(_ context.Context, s *Subject, emit rules.Emit) {
		f := rules.Finding{Severity: severity, Package: s.Package, Bundle: s.Name, Image: s.Pulled,
			Message: err.Error()}
		var read *bundle.ReadError
		if !errors.As(err, &read) {
			f.Fix = "make the image of the bundle available: look at its name, the registry and the credentials"
			emit(f)
			return
		}
		for _, p := range slices.Concat(read.Problems, read.Passed) {
			f.File, f.Line, f.Column, f.Field, f.Message = p.File, p.Line, p.Column, p.Field, p.Message
			emit(s.inImage(f))
		}
	}
	return rules.Each(ctx, r, []rules.Check[*Subject]{{Rules: []rules.Rule{rules.RuleUnreadable}, Find: find}}, &s)
}

// finding returns a finding at a value of an object of the bundle.
func (s *Subject) finding(p place, field, format string, args ...any) rules.Finding {
	if s.lines == nil {
		s.lines = bundlefs.NewLocator(s.FS)
	}
	f := rules.Finding{File: p.File, Field: field, Message: fmt.Sprintf(format, args...)}
	f.Line, f.Column = s.lines.Find(p)
	f.Package, f.Bundle = s.names()
	return s.inImage(f)
}

// inImage adds the image of a bundle of a catalog.
func (s *Subject) inImage(f rules.Finding) rules.Finding {
	f.Image, f.InImage = s.Pulled, s.Pulled != "" && f.File != ""
	return f
}
