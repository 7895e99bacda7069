package bundlecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// olmv1Prefix begins the identifiers of the rules of OLM v1; the rest is the id of package manifests.
const olmv1Prefix = "olmv1."

// refusalTitles have a sentence and a fix for each problem of package manifests that has no rule of its own.
var refusalTitles = []struct{ id, title, fix string }{
	{manifests.IDWebhook, "A bundle with webhooks needs a cluster that makes certificates.",
		"install cert-manager, or the service CA of OpenShift"},
	{manifests.IDConversionModes, "A bundle with conversion webhooks supports AllNamespaces and no other install mode.",
		"remove the other install modes"},
	{manifests.IDConfig, "The configuration fits the bundle.", seeMessage},
	{manifests.IDRender, "The manifests can be rendered.", seeMessage},
	{"validator:1", "The names of deployments are unique.", "rename one"},
	{"validator:2", "The name of a deployment is a DNS subdomain.", "rename it"},
	{"validator:3", "The names of CustomResourceDefinitions are unique.", "remove one"},
	{"validator:4", "A CRD that the ClusterServiceVersion owns is among the manifests.",
		"add it, or remove it from spec.customresourcedefinitions.owned"},
	{"validator:5", "The package has a name.",
		"add operators.operatorframework.io.bundle.package.v1 to annotations.yaml"},
	{"validator:7", "The deployment that serves a webhook exists.", "mend deploymentName"},
	{"validator:8", "The names of webhooks of one type are unique.", "rename one"},
	{"validator:9", "The name of a webhook is a DNS subdomain.", "mend generateName"},
	{"validator:10", "A CRD has one conversion webhook.", "remove it from one"},
	{"validator:11", "The CRD that a webhook converts is owned.", "mend conversionCRDs"},
	{"validator:12", "No webhook watches the API groups of OLM, or webhook configurations.", "narrow its rules"},
	{"validator:13", "OLM v1 can install the kind of an object.", "remove it"},
	{idBeta, "A CustomResourceDefinition is of the version v1.",
		"convert it: clusters since 1.22 refuse v1beta1, and OLM v1 drops its schema"},
	{idAPIVersion, "The API server of the Kubernetes version serves the kind of an object.",
		"write an apiVersion that it serves, or name the Kubernetes of your users by --kube-version"},
	{idAPIInvalid, "The API server takes the objects, those that OLM v1 generates included.",
		`mend the field that the message names; "bundle manifests" prints the objects that OLM v1 generates`},
}

var ruleTwice = rules.Rule{ID: olmv1Prefix + idTwice, Severity: rules.Warning, Profiles: []rules.Profile{rules.OLMv1},
	Scopes: []rules.Scope{rules.OnCatalog, rules.OnBundle},
	Title:  "An object is there once, those that OLM v1 generates included.",
	Fix:    "remove one: a ServiceAccount that a permission names is generated, and so is a role for each permission"}

func refusalRules() []rules.Rule {
	out := []rules.Rule{rules.RuleUnreadable, rules.RuleInstallMode, rules.RuleAPIService, ruleTwice}
	for _, t := range refusalTitles {
		out = append(out,
			rules.Rule{ID: olmv1Prefix + t.id, Severity: rules.Error, Profiles: []rules.Profile{rules.OLMv1},
				Scopes: []rules.Scope{rules.OnCatalog, rules.OnBundle}, Title: t.title, Fix: t.fix})
	}
	return out
}

var olmv1Checks = []rules.Check[*Subject]{
	{Rules: refusalRules(), Find: findRefusals},
	{Rules: []rules.Rule{rules.RuleDependency}, Find: findDependency},
}

// findRefusals reports everything for which operator-controller refuses the bundle, and for which the API server
// refuses what operator-controller applies.
func findRefusals(ctx context.Context, s *Subject, emit rules.Emit) {
	b, err := manifests.Read(s.FS)
	if err != nil {
		p := manifests.Unreadable(err)
		emit(s.unreadable(p))
		// OLM v1 stops there; these come after it.
		for _, more := range s.Bundle.StrictProblems() {
			if more.File != p.File {
				f := s.finding(inFile(more.File), "", "%s", more.Message)
				f.Rule, f.Line, f.Column = rules.RuleUnreadable.ID, more.Line, more.Column
				emit(f)
			}
		}
		return
	}
	for _, p := range s.apis().problems(ctx, b, settingsFor(b, s.Settings)) {
		f := s.refusalAt(p.Problem, p.path)
		f.Severity, f.Fix = p.severity, p.fix
		emit(f)
	}
}

// apis returns those of the subject, or the current ones.
func (s *Subject) apis() *APIs {
	if s.APIs == nil {
		s.APIs, _ = NewAPIs("")
	}
	return s.APIs
}

// unreadable returns the finding about a file that OLM v1 cannot read. The message is that of operator-controller,
// unless it has types of Go and the other checks find there what is wrong, with the place, the field and the
// correction.
func (s *Subject) unreadable(p manifests.Problem) rules.Finding {
	f := s.refusalAt(p, refusalPaths[p.ID])
	if !slices.ContainsFunc(goWords, func(words string) bool { return strings.Contains(p.Message, words) }) {
		return f
	}
	others := s.problems
	if s.Bundle != nil {
		others = slices.Concat(others, s.Bundle.StrictProblems())
	}
	for _, found := range others {
		if found.Severity == bundle.SeverityError && found.File == p.File {
			f.Line, f.Column, f.Field = found.Line, found.Column, found.Field
			if !strings.HasSuffix(p.Message, noObject) {
				f.Message = found.Message
			}
			break
		}
	}
	return f
}

// noObject ends the message about a file that is no object, such as a README: there is no field to name.
const noObject = "Go value of type unstructured.detector"

// goWords are in errors of decoders that name types of Go.
var goWords = []string{"Go struct field", "Go value of type", "unrecognized type: ", "cannot restore "}

// settingsFor completes settings by the configuration that a user has to write for a bundle: whether it can be
// installed does not depend on it.
func settingsFor(b *manifests.Bundle, s manifests.Settings) manifests.Settings {
	s.InstallNamespace = cmp.Or(s.InstallNamespace, "install")
	if s.Config != nil || !slices.Contains(s.Gates, manifests.SingleOwnNamespace) {
		return s
	}
	modes := b.InstallModes()
	switch {
	case slices.Contains(modes, "AllNamespaces"):
	case slices.Contains(modes, "OwnNamespace"):
		s.Config = json.RawMessage(`{"watchNamespace":"` + s.InstallNamespace + `"}`)
	case slices.Contains(modes, "SingleNamespace"):
		s.Config = json.RawMessage(`{"watchNamespace":"watched"}`)
	}
	return s
}

// refusalPaths say where in the ClusterServiceVersion the problems of an id are.
var refusalPaths = map[string][]any{
	manifests.IDAPIService:  {"spec", "apiservicedefinitions", "owned"},
	manifests.IDWebhook:     {"spec", "webhookdefinitions"},
	manifests.IDInstallMode: {"spec", "installModes"},
	"validator:1":           {"spec", "install", "spec", "deployments"},
	"validator:2":           {"spec", "install", "spec", "deployments"},
	"validator:4":           {"spec", "customresourcedefinitions", "owned"},
	"validator:7":           {"spec", "webhookdefinitions"},
	"validator:8":           {"spec", "webhookdefinitions"},
	"validator:9":           {"spec", "webhookdefinitions"},
	"validator:10":          {"spec", "webhookdefinitions"},
	"validator:11":          {"spec", "webhookdefinitions"},
	"validator:12":          {"spec", "webhookdefinitions"},

	manifests.IDConversionModes: {"spec", "webhookdefinitions"},
}

// refusalAt returns the finding of a problem with its place in the object.
func (s *Subject) refusalAt(p manifests.Problem, path []any) rules.Finding {
	where := inFile(p.File)
	if s.Bundle != nil {
		for _, o := range s.Bundle.Objects {
			if o.File == p.File && (p.Object == "" || p.Object == kindCSV && o.Kind == kindCSV ||
				p.Object == strings.TrimSpace(o.Kind+" "+o.Name)) {
				where = placeIn(o, path...)
				break
			}
		}
	}
	f := s.finding(where, canon.PathName(where.Path), "%s", p.Message)
	f.Rule = olmv1Prefix + p.ID
	return f
}

// findDependency finds what becomes a property that OLM v1 refuses once the bundle is in a catalog.
func findDependency(_ context.Context, s *Subject, emit rules.Emit) {
	if s.Name != "" || s.Bundle.CSV == nil {
		return // the catalog says it, or there is nothing to install
	}
	blob, err := s.Bundle.Blob("")
	if err != nil {
		return // found by other rules
	}
	typ, ok := resolve.Dependency(blob)
	if !ok {
		return
	}
	where := s.declares(typ)
	emit(s.finding(where, canon.PathName(where.Path),
		"bundle %q has a dependency declared via property %q which is currently not supported", blob.Name, typ))
}

// declares returns where the bundle declares what becomes a property of the type of a dependency.
func (s *Subject) declares(typ string) place {
	b := s.Bundle
	apis := typ == declcfg.PropertyGVKRequired
	switch {
	case slices.ContainsFunc(b.Properties, func(p declcfg.Property) bool { return p.Type == typ }):
		return inFile(b.MetadataDir + "/properties.yaml")
	case slices.ContainsFunc(b.Dependencies, func(d bundle.Dependency) bool {
		return apis == (d.Type == declcfg.PropertyGVK) // a dependency on an API has the type of an API
	}):
		return inFile(b.MetadataDir + "/dependencies.yaml")
	case apis && len(b.CSV.Required) > 0:
		list := "apiservicedefinitions"
		if len(jsonscan.Member(b.CSV.JSON, "spec", "customresourcedefinitions", "required")) > len("[]") {
			list = "customresourcedefinitions"
		}
		return placeIn(b.CSV.Object, "spec", list, "required")
	default:
		return placeIn(b.CSV.Object, "metadata", "annotations", "olm.properties")
	}
}

// CatalogManifests returns a function for [rules.CatalogSubject] that applies the rules of OLM v1 to the manifests in a
// catalog. Without apis these are the current ones. read, unless nil, is called with each bundle that OLM v1 can read.
func CatalogManifests(settings manifests.Settings, apis *APIs, read func(b *declcfg.Bundle, m *manifests.Bundle) error) func(
	context.Context, *rules.Run, *declcfg.Bundle) error {
	if apis == nil {
		apis, _ = NewAPIs("") // the empty version is valid
	}
	var failed error
	checks := []rules.Check[*declcfg.Bundle]{{Rules: refusalRules(),
		Find: func(ctx context.Context, b *declcfg.Bundle, emit rules.Emit) {
			m, err := BlobManifests(b)
			var problems []apiProblem
			if err != nil {
				problems = []apiProblem{{Problem: manifests.Unreadable(err)}}
			} else {
				problems = apis.problems(ctx, m, settingsFor(m, settings))
				if read != nil {
					failed = read(b, m)
				}
			}
			for _, p := range problems {
				emit(rules.Finding{Rule: olmv1Prefix + p.ID, Severity: p.severity, Package: b.Package, Bundle: b.Name,
					File: b.Pos.File, Line: b.Pos.Line, Message: p.Message, Fix: p.fix})
			}
		}}}
	return func(ctx context.Context, r *rules.Run, b *declcfg.Bundle) error {
		if err := rules.Each(ctx, r, checks, b); err != nil {
			return err
		}
		return failed
	}
}

// BlobManifests reads the manifests that a catalog has of a bundle.
func BlobManifests(b *declcfg.Bundle) (*manifests.Bundle, error) {
	objects, err := b.Objects()
	if err != nil {
		return nil, err
	}
	var texts []json.RawMessage
	for _, o := range objects {
		texts = append(texts, o)
	}
	return manifests.FromObjects(b.Package, texts, nil)
}

// OLMv1 applies the rules of OLM v1 to a bundle of a catalog.
func OLMv1(ctx context.Context, r *rules.Run, s Subject) error {
	if _, err := manifests.Read(s.FS); err != nil && s.Bundle != nil {
		report, err := Run(ctx, s.FS, s.Bundle, Options{Jobs: 1})
		if err != nil {
			return err
		}
		s.problems = report.Problems
	}
	return rules.Each(ctx, r, olmv1Checks, &s)
}

// IsRead reports whether an error of [bundle.Read] still leaves a bundle to be checked.
func IsRead(b *bundle.Bundle, err error) bool {
	var problems *bundle.ReadError
	return err == nil || b != nil && errors.As(err, &problems)
}
