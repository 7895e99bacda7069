package bundlecheck_test

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

const pinned = "registry.redhat.io/acme/operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// networkPolicyRule permits what Conforma demands.
const networkPolicyRule = "{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [create, delete, patch]}"

// goodCSV breaks no rule of OLM v1 and Conforma.
const goodCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: acme.v1.0.0
  annotations:
    containerImage: ` + pinned + `
    operators.openshift.io/valid-subscription: '["Acme"]'
    features.operators.openshift.io/disconnected: "true"
    features.operators.openshift.io/fips-compliant: "false"
    alm-examples: '[{"apiVersion":"acme.example.com/v1","kind":"Widget","metadata":{"name":"a"}}]'
spec:
  version: 1.0.0
  displayName: Acme
  minKubeVersion: 1.30.0
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned:
    - {name: widgets.acme.example.com, version: v1, kind: Widget}
  relatedImages:
  - {name: operator, image: ` + pinned + `}
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: acme
        rules:
        - ` + networkPolicyRule + `
      deployments:
      - name: acme
        spec:
          selector: {matchLabels: {app: acme}}
          template:
            metadata: {labels: {app: acme}}
            spec:
              containers:
              - name: acme
                image: ` + pinned + `
                env:
                - {name: RELATED_IMAGE_ACME, value: ` + pinned + `}
`

const goodCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.acme.example.com
spec:
  group: acme.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

const goodAnnotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: acme
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`

func goodBundle(edits ...string) fstest.MapFS {
	csv := goodCSV
	for i := 0; i+1 < len(edits); i += 2 {
		if !strings.Contains(csv, edits[i]) {
			panic("not in the manifest: " + edits[i])
		}
		csv = strings.Replace(csv, edits[i], edits[i+1], 1)
	}
	return fstest.MapFS{"manifests/acme.clusterserviceversion.yaml": {Data: []byte(csv)},
		"manifests/widgets.yaml":    {Data: []byte(goodCRD)},
		"metadata/annotations.yaml": {Data: []byte(goodAnnotations)}}
}

func conformaData(t *testing.T, more string) *rules.Data {
	t.Helper()
	d, err := rules.ReadData(strings.NewReader(`
allowed_olm_image_registry_prefixes: [registry.redhat.io/]
allowed_olm_resource_kinds: [ClusterServiceVersion, CustomResourceDefinition]
required_olm_features_annotations:
- features.operators.openshift.io/disconnected
- features.operators.openshift.io/fips-compliant
`+more), "data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func checkRules(t *testing.T, fsys fs.FS, img *rules.Image, o rules.Options,
	certs manifests.CertProvider) *rules.Report {
	t.Helper()
	r, err := rules.NewRun(o, bundlecheck.BundleRules())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if !bundlecheck.IsRead(b, err) {
		t.Fatal(err)
	}
	s := bundlecheck.Subject{FS: fsys, Bundle: b, Image: img, Settings: manifests.Settings{Certs: certs}}
	if err := bundlecheck.CheckRules(t.Context(), r, s); err != nil {
		t.Fatal(err)
	}
	return r.Report("bundle", rules.OnBundle)
}

func found(r *rules.Report) (out []string) {
	for _, f := range r.Findings {
		f.Column = 0 // TestColumns has those
		out = append(out, fmt.Sprintf("%s %s", f.Rule, f.Place()))
	}
	return out
}

var allOfThem = []rules.Profile{rules.OPM, rules.OLMv1, rules.Conforma}

func TestAGoodBundleBreaksNoRule(t *testing.T) {
	report := checkRules(t, goodBundle(), &rules.Image{Name: "registry.example.com/acme:v1"},
		rules.Options{Profiles: allOfThem, Data: conformaData(t, "")}, manifests.CertManager)
	if len(report.Findings) > 0 || len(report.NotRun) > 0 {
		t.Errorf("%+v\n%+v", report.Findings, report.NotRun)
	}
	if len(report.Bundles) != 1 || report.Bundles[0].State != rules.Installable {
		t.Errorf("%+v", report.Bundles)
	}
}

const webhook = `  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: a.acme.example.com, deploymentName: acme, sideEffects: None,
     admissionReviewVersions: [v1], containerPort: 443, rules: [{apiGroups: [acme.example.com], apiVersions: [v1],
     resources: [widgets], operations: [CREATE]}]}
`

// Each change breaks one rule of OLM v1 or Conforma, and no other of these.
func TestEachRuleOnBundlesFindsItsOwn(t *testing.T) {
	const csv = "manifests/acme.clusterserviceversion.yaml"
	v1 := []rules.Profile{rules.OLMv1, rules.Conforma}
	hook := func(edits ...string) []string {
		text := webhook
		for i := 0; i+1 < len(edits); i += 2 {
			text = strings.Replace(text, edits[i], edits[i+1], 1)
		}
		return []string{"  installModes:\n", text + "  installModes:\n"}
	}
	conversion := func(more string) string {
		return "  webhookdefinitions:\n  - {type: ConversionWebhook, generateName: c.acme.example.com, " +
			"deploymentName: acme, " +
			"sideEffects: None, admissionReviewVersions: [v1], conversionCRDs: [widgets.acme.example.com]}\n" + more
	}
	for _, c := range []struct {
		rule, place string
		edits       []string
		change      func(fstest.MapFS)
		img         *rules.Image
		data        string
		certs       manifests.CertProvider
	}{
		{rule: "olmv1.unreadable", place: "manifests/notes.txt:1", change: func(f fstest.MapFS) {
			f["manifests/notes.txt"] = &fstest.MapFile{Data: []byte("hello\n")}
		}},
		{rule: "olmv1.install-mode", place: csv + ":16", edits: []string{"{type: AllNamespaces, supported: true}",
			"{type: OwnNamespace, supported: true}"}},
		{rule: "olmv1.api-service", edits: []string{"  installModes:\n",
			"  apiservicedefinitions: {owned: [{name: a, group: b, version: v1, kind: A, deploymentName: " +
				"acme}]}\n  installModes:\n"}},
		{rule: "olmv1.webhook-needs-cert-provider", edits: hook(), certs: manifests.NoCerts},
		{rule: "olmv1.conversion-install-modes", edits: []string{"  installModes:\n", conversion("  installModes:\n"),
			"supported: true}\n", "supported: true}\n  - {type: OwnNamespace, supported: true}\n"}},
		{rule: "olmv1.dependency", place: "metadata/dependencies.yaml", change: func(f fstest.MapFS) {
			f["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte("dependencies:\n- type: olm.package\n" +
				"  value: {packageName: other, version: \">=1.0.0\"}\n")}
		}},
		{rule: "olmv1.dependency", place: csv + ":19", edits: []string{"    owned:\n",
			"    required:\n    - {name: others.acme.example.com, version: v1, kind: Other}\n    owned:\n"}},
		{rule: "olmv1.crd-v1beta1", place: "manifests/widgets.yaml:1", change: func(f fstest.MapFS) {
			f["manifests/widgets.yaml"].Data = []byte(strings.Replace(goodCRD, "k8s.io/v1", "k8s.io/v1beta1", 1))
		}},
		{rule: "olmv1.api-version", place: "manifests/budget.yaml:1", change: func(f fstest.MapFS) {
			f["manifests/budget.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: policy/v1beta1\n" +
				"kind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: 1}\n")}
		}},
		{rule: "olmv1.api-invalid", place: "manifests/budget.yaml:5", change: func(f fstest.MapFS) {
			f["manifests/budget.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: policy/v1\n" +
				"kind: PodDisruptionBudget\nmetadata: {name: a}\nspec:\n  minAvailable: -1\n")}
		}},
		{rule: "olmv1.api-invalid", place: csv + ":34", edits: []string{"labels: {app: acme}", "labels: {app: other}"}},
		{rule: "olmv1.api-invalid", place: csv + ":37", edits: []string{"              - name: acme\n",
			"              - name: Acme\n"}},
		{rule: "olmv1.validator:1",
			edits: []string{"      - name: acme\n",
				"      - name: acme\n        spec: {selector: {}, template: {metadata: {}, spec: {containers: " +
					"[]}}}\n      - name: acme\n"}},
		{rule: "olmv1.validator:2", edits: []string{"      - name: acme\n", "      - name: Acme_1\n"}},
		{rule: "olmv1.validator:3", place: "manifests/widgets2.yaml:1", change: func(f fstest.MapFS) {
			f["manifests/widgets2.yaml"] = f["manifests/widgets.yaml"]
		}},
		{rule: "olmv1.validator:4", change: func(f fstest.MapFS) { delete(f, "manifests/widgets.yaml") }},
		{rule: "olmv1.validator:5", place: "metadata/annotations.yaml", change: func(f fstest.MapFS) {
			f["metadata/annotations.yaml"].Data = []byte(strings.Replace(goodAnnotations, "package.v1: acme",
				"package.v1: \"\"", 1))
		}},
		{rule: "olmv1.validator:7", edits: hook("deploymentName: acme", "deploymentName: other")},
		{rule: "olmv1.validator:8", edits: []string{"  installModes:\n", webhook +
			strings.TrimPrefix(webhook, "  webhookdefinitions:\n") + "  installModes:\n"}},
		{rule: "olmv1.validator:9", edits: hook("generateName: a.acme", "generateName: A_b.acme")},
		{rule: "olmv1.validator:10", edits: []string{"  installModes:\n", conversion(strings.Replace(
			strings.TrimPrefix(conversion(""), "  webhookdefinitions:\n"), "generateName: c", "generateName: d", 1) +
			"  installModes:\n")}},
		{rule: "olmv1.validator:11", edits: []string{"  installModes:\n", strings.Replace(conversion(""),
			"widgets.acme.example.com]", "others.acme.example.com]", 1) + "  installModes:\n"}},
		{rule: "olmv1.validator:12", edits: hook("apiGroups: [acme.example.com]", "apiGroups: [\"*\"]")},
		{rule: "olmv1.validator:13", place: "manifests/job.yaml:1", data: "",
			change: func(f fstest.MapFS) {
				f["manifests/job.yaml"] = &fstest.MapFile{Data: []byte(
					"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n")}
			}},
		{rule: "olm.csv_semver_format", place: csv + ":12", edits: []string{"version: 1.0.0", "version: v1"}},
		{rule: "olm.unpinned_references", place: csv + ":6", edits: []string{"containerImage: " + pinned,
			"containerImage: registry.redhat.io/acme/operator:v1"}},
		{rule: "olm.unpinned_references", place: csv + ":38", edits: []string{"                image: " + pinned,
			"                image: registry.redhat.io/acme/operator:v1"}},
		{rule: "olm.unpinned_references", place: csv + ":21", data: "any registry", edits: []string{
			"  - {name: operator, image: " + pinned, "  - {name: operator, image: operator:v1"}},
		{rule: "olm.unpinned_references", place: csv + ":38", data: "any registry", edits: []string{
			"                image: " + pinned, "                image: REPLACE_IMAGE"}},
		{rule: "olm.feature_annotations_format", place: csv + ":8", edits: []string{"disconnected: \"true\"",
			"disconnected: \"yes\""}},
		{rule: "olm.required_olm_features_annotations_provided", data: "required_olm_features_annotations: []"},
		{rule: "olm.subscriptions_annotation_format", place: csv + ":7", edits: []string{`'["Acme"]'`, `'["a","a"]'`}},
		{rule: "olm.allowed_registries", place: csv + ":21",
			edits: []string{"  - {name: operator, image: registry.redhat.io",
				"  - {name: operator, image: quay.io"}},
		{rule: "olm.olm_bundle_multi_arch", img: &rules.Image{Name: "registry.example.com/acme:v1", Index: true}},
		{rule: "olm.allowed_resource_kinds", place: "manifests/account.yaml:2", change: func(f fstest.MapFS) {
			f["manifests/account.yaml"] = &fstest.MapFile{Data: []byte(
				"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n")}
		}},
		{rule: "olm.required_network_policy_rbac_for_operands", place: csv + ":25",
			edits: []string{"verbs: [create, delete, patch]", "verbs: [create, delete]"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			fsys := goodBundle(c.edits...)
			if c.change != nil {
				c.change(fsys)
			}
			if c.certs == "" {
				c.certs = manifests.CertManager
			}
			d := conformaData(t, "")
			switch c.data {
			case "":
			case "any registry":
				d.ImagePrefixes = []string{""}
			default:
				d.Features = []string{}
			}
			if c.rule == "olmv1.validator:13" || strings.HasPrefix(c.rule, "olmv1.api-") {
				d.Kinds = append(d.Kinds, "Job", "PodDisruptionBudget")
			}
			report := checkRules(t, fsys, c.img, rules.Options{Profiles: v1, Data: d, FailOn: rules.Warning}, c.certs)
			got := map[string]bool{}
			for _, f := range report.Findings {
				got[f.Rule] = true
			}
			if len(got) != 1 || !got[c.rule] || c.place != "" && found(report)[0] != c.rule+" "+c.place {
				t.Errorf("got %q, want %s at %q\n%+v", found(report), c.rule, c.place, report.Findings)
			}
			if report.Passed {
				t.Error("passed")
			}
			promised(t, fsys, report, c.certs)
		})
	}
}

// promised checks that Run warns of what OLM v1 refuses, unless it is an error anyway.
func promised(t *testing.T, fsys fs.FS, refused *rules.Report, certs manifests.CertProvider) {
	t.Helper()
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if !bundlecheck.IsRead(b, err) {
		t.Fatal(err)
	}
	report, err := bundlecheck.Run(t.Context(), fsys, b, bundlecheck.Options{OLMv1: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range refused.Findings {
		if !strings.HasPrefix(f.Rule, "olmv1.") || f.Severity != rules.Error || certs != manifests.CertManager {
			continue
		}
		if !slices.ContainsFunc(report.Problems, func(p bundle.Problem) bool {
			return p.File == f.File && (p.Rule == f.Rule && p.Severity == bundle.SeverityWarning && p.Line == f.Line &&
				strings.Contains(p.Message, f.Message) || p.Severity == bundle.SeverityError)
		}) {
			t.Errorf("no warning of %+v in %v", f, report.Problems)
		}
	}
}

// The cases are those of the policy.
func TestPermissionsOnNetworkPolicies(t *testing.T) {
	const permission = "      clusterPermissions:\n      - serviceAccountName: acme\n        rules:\n        - " + networkPolicyRule + "\n"
	rule := func(text string) []string { return []string{networkPolicyRule, text} }
	for name, c := range map[string]struct {
		edits      []string
		exceptions map[string][]string
		missing    bool
	}{
		"update instead of patch":   {edits: rule(strings.Replace(networkPolicyRule, "patch", "update", 1))},
		"any verb":                  {edits: rule(`{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: ["*"]}`)},
		"any group and resource":    {edits: rule(`{apiGroups: ["*"], resources: ["*"], verbs: [create, delete, patch]}`)},
		"in permissions":            {edits: []string{"clusterPermissions:", "permissions:"}},
		"another group":             {edits: rule(strings.Replace(networkPolicyRule, "networking", "other", 1)), missing: true},
		"another resource":          {edits: rule(strings.Replace(networkPolicyRule, "networkpolicies", "ingresses", 1)), missing: true},
		"without create":            {edits: rule(strings.Replace(networkPolicyRule, "create, ", "", 1)), missing: true},
		"without delete":            {edits: rule(strings.Replace(networkPolicyRule, "delete, ", "", 1)), missing: true},
		"in two rules":              {edits: rule("{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [create]}\n        - " + strings.Replace(networkPolicyRule, "create, ", "", 1)), missing: true},
		"no permissions":            {edits: []string{permission, ""}, missing: true},
		"an exception":              {edits: []string{permission, ""}, exceptions: map[string][]string{"acme": {"0.9", "1.0"}}},
		"exception of another":      {edits: []string{permission, ""}, exceptions: map[string][]string{"other": {"1.0"}, "acme": {"1.1", "1"}}, missing: true},
		"permissions not as a list": {edits: []string{permission, "      clusterPermissions: {rules: [5]}\n"}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			data := conformaData(t, "")
			data.NetworkPolicyExceptions = c.exceptions
			report := checkRules(t, goodBundle(c.edits...), nil,
				rules.Options{Profiles: []rules.Profile{rules.Conforma}, Data: data}, manifests.CertManager)
			var want []string
			if c.missing {
				want = []string{`Operator "acme" version "1.0.0" is missing required NetworkPolicy RBAC ` +
					`(networking.k8s.io/networkpolicies with create, delete, and update/patch)`}
			}
			var got []string
			for _, f := range report.Findings {
				got = append(got, f.Message)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Every rule that the checks of bundles name is in the list of rules.
func TestRulesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range bundlecheck.BundleRules() {
		if listed[r.ID] && !strings.HasPrefix(r.ID, "olmv1.") {
			t.Errorf("%s is listed twice", r.ID)
		}
		listed[r.ID] = true
		if r.Title == "" || r.Fix == "" || len(r.Profiles) == 0 || len(r.Scopes) == 0 {
			t.Errorf("%+v", r)
		}
	}
	named := regexp.MustCompile(`(?:fail|warn)\("([a-z0-9/-]+)"|Rule: "([a-z0-9/-]+)|Rule[A-Za-z]+ += "([a-z-]+)"`)
	for _, dir := range []string{".", "../../bundle"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(dir + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				name, _, _ := strings.Cut(m[1]+m[2]+m[3], "/")
				selectable := false
				for _, v := range bundlecheck.Validators() {
					selectable = selectable || v.Name == name
				}
				if !listed["bundle."+name] && !selectable {
					t.Errorf("%s/%s: no rule bundle.%s", dir, e.Name(), name)
				}
			}
		}
	}
}

func TestManifestsOfCatalogs(t *testing.T) {
	for want, edits := range map[string][]string{
		"":                   nil,
		"olmv1.install-mode": {"{type: AllNamespaces, supported: true}", "{type: OwnNamespace, supported: true}"},
		"olmv1.validator:2":  {"      - name: acme\n", "      - name: Acme_1\n"},
	} {
		b, err := bundle.Read(t.Context(), goodBundle(edits...), bundle.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		blob, err := b.Blob("registry.example.com/acme:v1")
		if err != nil {
			t.Fatal(err)
		}
		r, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.OLMv1}}, bundlecheck.BundleRules())
		if err != nil {
			t.Fatal(err)
		}
		r.SetBundle(rules.Installability{Package: "acme", Bundle: "acme.v1.0.0", State: rules.Unknown})
		find := bundlecheck.CatalogManifests(manifests.Settings{Certs: manifests.CertManager}, nil, nil)
		if err := find(t.Context(), r, blob); err != nil {
			t.Fatal(err)
		}
		report := r.Report("catalog", rules.OnCatalog)
		if got := strings.TrimSpace(strings.Join(found(report), " ")); !strings.HasPrefix(got, want) ||
			want == "" && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A bundle without a package is refused in the account of installability too.
func TestRefusedWithoutPackage(t *testing.T) {
	fsys := goodBundle()
	fsys["metadata/annotations.yaml"].Data = []byte(strings.Replace(goodAnnotations, "package.v1: acme",
		"package.v1: \"\"", 1))
	report := checkRules(t, fsys, nil, rules.Options{Profiles: []rules.Profile{rules.OLMv1}}, manifests.CertManager)
	if len(report.Bundles) != 1 || report.Bundles[0].State != rules.Refused {
		t.Errorf("%+v", report.Bundles)
	}
}
