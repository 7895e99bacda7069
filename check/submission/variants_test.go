package submission_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
)

// sample returns the files of a repository that has no fault.
func sample(t *testing.T) fstest.MapFS {
	t.Helper()
	const root = "../../testdata/pipelines/repository/"
	out := fstest.MapFS{}
	for _, name := range []string{"config.yaml", "operators/demo/ci.yaml",
		"operators/demo/1.0.0/metadata/annotations.yaml", "operators/demo/1.1.0/metadata/annotations.yaml",
		"operators/demo/1.0.0/manifests/demo.clusterserviceversion.yaml", "operators/demo/1.1.0/manifests/demo.clusterserviceversion.yaml",
		"operators/demo/1.0.0/manifests/demo.example.com_widgets.yaml", "operators/demo/1.1.0/manifests/demo.example.com_widgets.yaml"} {
		text, err := os.ReadFile(root + name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = &fstest.MapFile{Data: text}
	}
	return out
}

// Faults that could be passed over, each as a change of a repository without one.
func TestFaultsArePassedOverByNone(t *testing.T) {
	const csv, metadata = "/manifests/demo.clusterserviceversion.yaml", "/metadata/annotations.yaml"
	set := func(name, text string) func(fstest.MapFS) {
		return func(fsys fstest.MapFS) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	replace := func(name, old, text string) func(fstest.MapFS) {
		return func(fsys fstest.MapFS) {
			fsys[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(fsys[name].Data), old, text, 1))}
		}
	}
	whole := submission.Place{Kind: submission.Whole}
	operator := submission.Place{Kind: submission.OperatorOf, Operator: "demo"}
	last := submission.Place{Kind: submission.BundleOf, Operator: "demo", Bundle: "1.1.0"}
	for name, test := range map[string]struct {
		profile rules.Profile
		place   submission.Place
		change  func(fstest.MapFS)
		want    string // "rule severity", or the text of an error
	}{
		"the newest bundle cannot be read":           {rules.Certified, operator, set("operators/demo/1.1.0"+csv, "a: {\n"), "check_operator_name error"},
		"the newest bundle has another name":         {rules.Certified, operator, replace("operators/demo/1.1.0"+csv, "name: demo.v1.1.0", "name: aaa.v1.1.0"), "check_operator_name error"},
		"a waiver that is no text":                   {rules.Community, whole, set("config.yaml", "tests: [{name: check_operator_name, ignore_operators: [123]}]\n"), "submission.config error"},
		"registries that are no list":                {rules.Community, whole, set("config.yaml", "allowed_bundle_registries: quay.io/only/\n"), "submission.config error"},
		"a tag in a manifest":                        {rules.Certified, last, set("operators/demo/1.1.0/manifests/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: !custom b}\n"), "check_network_policy_presence error"},
		"a tag after an anchor":                      {rules.Certified, operator, set("operators/demo/ci.yaml", "x: &b !foo a\n"), "check_schema_operator_ci_config error"},
		"channels of another bundle that are a list": {rules.Community, last, replace("operators/demo/1.0.0"+metadata, "channels.v1: stable", "channels.v1: [stable]"), "check_dangling_bundles error"},
		"annotations of another bundle that cannot be read": {rules.Certified, last, func(fsys fstest.MapFS) {
			set("operators/demo/1.0.0"+metadata, "a: {\n")(fsys)
			replace("operators/demo/1.1.0"+csv, "  replaces: demo.v1.0.0\n", "")(fsys)
			replace("operators/demo/1.1.0"+csv, "  annotations:\n", "  annotations:\n    olm.skipRange: '<1.1.0'\n")(fsys)
		}, "check_pruned_graph error"},
		"an operator of half a bundle": {rules.Community, whole, set("operators/new/1.0.0/manifests/a.yaml", "a: b\n"), "submission.half-bundle warning"},
		"a catalog that cannot be read, beside one that is ignored": {rules.Community, whole, func(fsys fstest.MapFS) {
			set("catalogs/v4.17/.indexignore", "demo\n")(fsys)
			set("catalogs/v4.17/demo/catalog.yaml", "image: {docker.io\n")(fsys)
		}, "check_bundle_images_in_fbc error"},
		"a package of a catalog without a project": {rules.Certified, submission.Place{Kind: submission.CatalogOf, Catalog: "v4.17"}, set("catalogs/v4.17/demo/catalog.yaml", "{}\n"), "certification-project-check error"},
		"the pages of the marketplace":             {rules.Marketplace, last, set("config.yaml", "organization: community-operators\n"), "check_marketplace_annotation error"},
		"two files of a ClusterServiceVersion":     {rules.Community, last, set("operators/demo/1.1.0/manifests/z.clusterserviceversion.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), "submission.csv-second error"},
		"a version that is a number":               {rules.Certified, last, replace("operators/demo/1.1.0"+csv, "version: 1.1.0\n", "version: 1.10\n"), "check_operator_version_directory_name error"},
		"a list that begins with an equals sign":   {rules.Community, last, replace("operators/demo/1.1.0"+metadata, "openshift.versions: v4.12", "openshift.versions: =v4.12,v4.13"), "check_api_version_constraints error"},
		"a file of tests that is too large":        {rules.Community, last, set("operators/demo/1.1.0/tests/a.yaml", strings.Repeat("# comment\n", 500_000)), "yaml-lint error"},
		"an empty repository": {rules.Community, whole, func(fsys fstest.MapFS) {
			for name := range fsys {
				if name != "config.yaml" {
					delete(fsys, name)
				}
			}
		}, "there is no operator"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := sample(t)
			test.change(fsys)
			run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{test.profile}}, submission.Rules())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := submission.Open(fsys).Check(t.Context(), run, test.place, submission.Options{}); err != nil {
				got = err.Error()
			}
			for _, f := range run.Report("", rules.OnRepository).Findings {
				got += f.Rule + " " + string(f.Severity) + ": " + f.Text() + "\n"
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s\nlacks %q", got, test.want)
			}
		})
	}
}

// Images of one repository are allowed by its whole name, and not those of one that begins with it.
func TestAllowedRegistries(t *testing.T) {
	for registry, want := range map[string]bool{"quay.io/acme/demo": true, "quay.io/acme/": true, "quay.io/acme": true, "quay.io": true,
		"quay.io/ac": false, "quay.io/acme/dem": false, "docker.io/": false} {
		fsys := sample(t)
		fsys["config.yaml"] = &fstest.MapFile{Data: []byte("organization: community-operators\nallowed_bundle_registries: [\"" + registry + "\"]\n")}
		fsys["catalogs/v4.17/demo/catalog.yaml"] = &fstest.MapFile{Data: []byte("schema: olm.bundle\nname: a\nimage: quay.io/acme/demo@sha256:aa\n")}
		run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.Community}, Skip: []string{"validate_catalog_format"}}, submission.Rules())
		if err != nil {
			t.Fatal(err)
		}
		place := submission.Place{Kind: submission.CatalogOf, Catalog: "v4.17"}
		if err := submission.Open(fsys).Check(t.Context(), run, place, submission.Options{}); err != nil {
			t.Fatal(err)
		}
		if report := run.Report("", rules.OnCatalog); report.Passed != want {
			t.Errorf("%s: %v, want %v: %v", registry, report.Passed, want, report.Findings)
		}
	}
}
