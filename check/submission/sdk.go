package submission

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
)

// sdkRules are the two runs of operator-sdk. What both find is a finding of the suite, which has all validators of the
// other one.
var sdkRules = []rules.Rule{
	{ID: "check_osdk_bundle_validate_operator_framework", Severity: rules.Error, Profiles: community, Scopes: onBundle,
		Title: "operator-sdk's validators of the suite operatorframework accept the bundle.", Fix: seeMessage},
	{ID: "check_osdk_bundle_validate_operatorhub", Severity: rules.Error, Profiles: community, Scopes: onBundle,
		Title: "operator-sdk's validator operatorhub accepts the bundle.", Fix: seeMessage},
}

// onlyFramework are the validators of the suite that the run of operatorhub does not have.
var onlyFramework = []string{"alpha-deprecated-apis", "good-practices"}

func findSDK(ctx context.Context, c *bundleCheck, emit rules.Emit) {
	b := c.read
	if b == nil {
		emit(c.of(rules.Finding{Rule: c.sdkRule(""), File: c.b.dir, Message: c.unread.Error()}))
		return
	}
	sub, err := fs.Sub(c.fsys, c.b.dir)
	if err != nil {
		return // the bundle was read from it
	}
	suite, err := bundlecheck.SelectByLabels("suite=operatorframework")
	if err != nil {
		panic(err) // a selector of this program
	}
	kubernetes, runs := c.highestKubernetes()
	o := bundlecheck.Options{OPM: true, SDK: true, Jobs: 1, KubernetesVersion: kubernetes, Select: suite}
	report, err := bundlecheck.Run(ctx, sub, b, o)
	if err != nil {
		return // the context has ended
	}
	known := map[string]bool{}
	for _, o := range b.Objects {
		known[o.File] = true
	}
	unread := slices.ContainsFunc(report.Problems, func(p bundle.Problem) bool {
		known[p.File] = true
		return p.Severity == bundle.SeverityError && path.Dir(p.File) != b.ManifestsDir
	})
	for _, p := range report.Problems {
		rule, _, isLibrary := strings.Cut(p.Rule, "/")
		if p.Severity != bundle.SeverityError && (unread || !isLibrary) {
			continue // operator-sdk does not come to it, or it is no finding of its own
		}
		f := c.of(rules.Finding{Rule: c.sdkRule(rule), Severity: rules.Severity(p.Severity), Line: p.Line, Column: p.Column,
			Field: p.Field, Message: p.Message, Fix: bundlecheck.Fix(p.Rule)})
		if !runs || p.Rule == bundle.RuleAnnotations && strings.HasPrefix(p.Field, "annotations[") {
			f.Severity = rules.Warning // operator-sdk takes any scalar in annotations, and opm does not
		}
		f.File = path.Join(c.b.dir, p.File)
		emit(f)
	}
	entries, _ := fs.ReadDir(sub, b.ManifestsDir) // what cannot be read is among the problems
	for _, e := range entries {
		if file := path.Join(b.ManifestsDir, e.Name()); !e.IsDir() && !known[file] {
			emit(c.of(rules.Finding{Rule: c.sdkRule(""), File: path.Join(c.b.dir, file),
				Message: "the file has no object: operator-sdk refuses the bundle", Fix: "remove the file"}))
		}
	}
}

// sdkRule returns the rule of what a validator finds: that of the suite, unless it does not run.
func (c *bundleCheck) sdkRule(validator string) string {
	run := c.in(c.op.name, "", "")
	if run.Wants(sdkRules[0]) || slices.Contains(onlyFramework, validator) {
		return sdkRules[0].ID
	}
	return sdkRules[1].ID
}

// highestKubernetes returns the version of the Kubernetes in the highest OpenShift that the bundle is for; that of the
// highest one that has a catalog if the annotation selects none. runs is false if there is no catalog for the bundle:
// then the pipeline does not run the validators.
func (c *bundleCheck) highestKubernetes() (version string, runs bool) {
	highest := c.Versions.Indices(openshift.Community)
	for i, versions := range [][]openshift.Version{highest, c.Versions.Versions()} {
		selected, err := openshift.Select(c.b.openshiftText(), versions)
		if err == nil && len(selected) > 0 {
			highest, runs = selected, i == 0
			break
		}
		runs = runs || err != nil
	}
	if len(highest) == 0 {
		return "", runs
	}
	k, _ := c.Versions.Kubernetes(highest[len(highest)-1])
	return k.String(), runs
}
