package bundle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Report is what the tests read of the answer of "check -o json".
type report struct {
	KubeVersion string
	Bundles     []struct{ Package, State, Manifests string }
	Findings    []struct {
		Package, Rule, Severity, Message, File, Image string
		InImage                                       bool
	}
}

// of returns the state of a package's bundle, and the errors "RULE: MESSAGE".
func (r report) of(pkg string) (state, from string, errors []string) {
	for _, b := range r.Bundles {
		if b.Package == pkg {
			state, from = b.State, b.Manifests
		}
	}
	for _, f := range r.Findings {
		if f.Package == pkg && f.Severity == "error" {
			errors = append(errors, f.Rule+": "+f.Message)
		}
	}
	slices.Sort(errors)
	return state, from, slices.Compact(errors)
}

func checkReport(t *testing.T, dir string, args ...string) (r report) {
	t.Helper()
	got := clitest.RunProgram(t, dir, "bindery", append([]string{"check", "--profile", "olmv1", "-o", "json", "--use-http",
		"--no-cache"}, args...)...)
	if err := json.Unmarshal([]byte(got.Stdout), &r); err != nil {
		t.Fatalf("%v: %v\n%+v", args, err, got)
	}
	return r
}

// onlyInImages are the packages whose objects in a catalog are sound: what OLM v1 refuses is another file of the image.
var onlyInImages = []string{"rprose", "rsubdir"}

// A bundle has one answer, whether its directory, its image or a catalog with it is checked, and the answer is that of
// operator-controller on a cluster. The image decides; without it the answer says that it was not read.
func TestOneAnswerAboutABundle(t *testing.T) {
	t.Parallel()
	bundles, said := clitest.ClusterBundles(t)
	addRefusedByAPI(t, bundles, said)
	registry := testregistry.New(t)
	dir := t.TempDir()
	for pkg, files := range bundles {
		for name, text := range files {
			clitest.WriteFile(t, filepath.Join(dir, "bundles", pkg, filepath.FromSlash(name)), text)
		}
		image := registry.Host() + "/acme/" + pkg + ":v1"
		clitest.Done(t, dir, "bindery", "build", "bundle", "bundles/"+pkg, "-t", image, "--skip-validation", "--push",
			"--use-http")
		for _, objects := range []bool{true, false} {
			clitest.WriteFile(t, filepath.Join(dir, fmt.Sprint("objects-", objects), pkg, "catalog.json"),
				clitest.CatalogOf(t, pkg, image, files, objects))
		}
	}
	unread := checkReport(t, dir, "objects-true")
	pulled := map[string]report{
		"objects, pulled":  checkReport(t, dir, "objects-true", "--pull"),
		"metadata, pulled": checkReport(t, dir, "objects-false", "--pull"),
	}
	for pkg := range bundles {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			wantState, wantFrom, want := checkReport(t, dir, "bundles/"+pkg).of(pkg)
			if wantFrom != "directory" {
				t.Errorf("the manifests are from %q", wantFrom)
			}
			expectRecorded(t, said[pkg], wantState, want)
			answers := map[string]report{"image": checkReport(t, dir, registry.Host()+"/acme/"+pkg+":v1")}
			maps.Copy(answers, pulled)
			for name, r := range answers {
				state, from, errors := r.of(pkg)
				if state != wantState || from != "image" || !slices.Equal(errors, want) {
					t.Errorf("%s: %s (%s) %q, want %s %q", name, state, from, errors, wantState, want)
				}
			}
			inImage := wantState
			if slices.Contains(onlyInImages, pkg) {
				wantState, want = "installable", nil
			}
			state, from, errors := unread.of(pkg)
			if state != wantState || from != "catalog" || !slices.Equal(errors, want) {
				t.Errorf("not pulled: %s (%s) %q, want %s %q", state, from, errors, wantState, want)
			}
			expectResolved(t, dir, pkg, inImage, want)
		})
	}
	for _, r := range pulled {
		for _, f := range r.Findings {
			if image := registry.Host() + "/acme/" + f.Package + ":v1"; f.InImage != (f.File != "" &&
				f.File != f.Package+"/catalog.json") || f.InImage && f.Image != image {
				t.Errorf("%+v, want the image %s", f, image)
			}
		}
	}
	text := clitest.RunProgram(t, dir, "bindery", "check", "objects-true", "--profile", "olmv1", "--use-http", "--no-cache",
		"--pull").Stdout
	want := registry.Host() + "/acme/rsubdir:v1: manifests/sub: rsubdir/rsubdir.v1.0.0: subdirectories are not allowed"
	if !strings.Contains(text, want) || strings.Contains(text, "objects-true/manifests") {
		t.Errorf("want %q in\n%s", want, text)
	}
	sarif := clitest.RunProgram(t, dir, "bindery", "check", "objects-true", "--profile", "olmv1", "--use-http", "--no-cache",
		"--pull", "-o", "sarif").Stdout
	if strings.Contains(sarif, "objects-true/manifests") ||
		!strings.Contains(sarif, `"`+registry.Host()+`/acme/rsubdir:v1: manifests/sub"`) {
		t.Errorf("a file of an image is no file of the catalog:\n%s", sarif)
	}
	text = clitest.RunProgram(t, dir, "bindery", "check", "objects-true", "--profile", "olmv1").Stdout
	if !strings.Contains(text, "\nimages not read: ") {
		t.Errorf("nothing says that the images are not read:\n%s", text)
	}
}

// expectResolved expects of resolve the errors of check as warnings, and with --pull the refusal of the bundle.
func expectResolved(t *testing.T, dir, pkg, state string, want []string) {
	t.Helper()
	args := []string{"resolve", pkg, "objects-true", "-o", "json", "--use-http", "--no-cache"}
	got := clitest.RunProgram(t, dir, "bindery", args...)
	if got.Status != 0 {
		if state != "refused" || !strings.Contains(got.Stderr, "validating bundle") {
			t.Errorf("resolve: %+v", got)
		}
		return
	}
	var answer struct {
		Warnings []struct{ Rule, Severity, Message string }
	}
	if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil {
		t.Fatal(err)
	}
	var errors []string
	for _, w := range answer.Warnings {
		if w.Severity == "error" {
			errors = append(errors, w.Rule+": "+w.Message)
		}
	}
	slices.Sort(errors)
	if errors = slices.Compact(errors); !slices.Equal(errors, want) {
		t.Errorf("resolve warns of %q, want %q", errors, want)
	}
	if got := clitest.RunProgram(t, dir, "bindery", append(args, "--pull")...); (got.Status == 0) != (state == "installable") {
		t.Errorf("resolve --pull of what is %s: %+v", state, got)
	}
}

// expectRecorded compares the errors about a bundle with what operator-controller said.
func expectRecorded(t *testing.T, said, state string, errors []string) {
	t.Helper()
	if said == "" || said == "Desired state reached" {
		if state != "installable" || len(errors) > 0 {
			t.Errorf("%s, %q, and a cluster installs it", state, errors)
		}
		return
	}
	said, _, _ = strings.Cut(said, "\nensure CRDs are installed first")
	if state != "refused" || !slices.ContainsFunc(errors, func(e string) bool {
		_, message, _ := strings.Cut(e, ": ")
		message, _, _ = strings.Cut(message, ": Kubernetes ") // the controller does not say when it was removed
		return strings.HasSuffix(said, ": "+message)
	}) {
		t.Errorf("%s, %q, and a cluster says %q", state, errors, said)
	}
}

// refusedByAPI are changes of the bundles widget and gadget, a text in a file and what takes its place, with what the API
// server says.
var refusedByAPI = map[string]struct{ of, file, old, text, said string }{
	"apdb": {"widget", "poddisruptionbudget-widget-pdb.yaml", "policy/v1", "policy/v1beta1",
		`no matches for kind "PodDisruptionBudget" in version "policy/v1beta1"`},
	"aboth": {"widget", "poddisruptionbudget-widget-pdb.yaml", "minAvailable: 1", "minAvailable: 1\n  maxUnavailable: 1",
		`PodDisruptionBudget.policy "aboth-pdb" is invalid: spec: Invalid value: minAvailable and maxUnavailable cannot be both set`},
	"aclass": {"widget", "priorityclass-widget-high.yaml", "name: aclass-high", "name: system-aclass",
		`PriorityClass.scheduling.k8s.io "system-aclass" is invalid: metadata.name: Forbidden: priority class names with ` +
			`'system-' prefix are reserved for system use only. error: system-aclass is not a known system priority class`},
	"akey": {"widget", "configmap-widget-config.yaml", "config.yaml:", "config/yaml:",
		`ConfigMap "akey-config" is invalid: data[config/yaml]: Invalid value: "config/yaml": a valid config key must ` +
			`consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex ` +
			`used for validation is '[-._a-zA-Z0-9]+')`},
	"abase": {"widget", "secret-widget-token.yaml", "stringData:\n  key: value", "data:\n  key: '*'",
		`Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0`},
	"aport": {"widget", "service-widget-metrics.yaml", "port: 8443", "port: 84430",
		`Service "aport-metrics" is invalid: spec.ports[0].port: Invalid value: 84430: must be between 1 and 65535, inclusive`},
	"aname": {"widget", "service-widget-metrics.yaml", "name: aname-metrics", "name: Aname",
		`Service "Aname" is invalid: metadata.name: Invalid value: "Aname": a lowercase RFC 1123 label must consist of lower ` +
			`case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  ` +
			`or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
	"atype": {"widget", "service-widget-metrics.yaml", "port: 8443", "port: '8443'",
		`Service in version "v1" cannot be handled as a Service: spec.ports[0].port: is a string, expected a whole ` +
			"number (write 8443 without quotes)"},
	"alabel": {"widget", "service-widget-metrics.yaml", "app: alabel\nspec", "app: a b\nspec",
		`Service "alabel-metrics" is invalid: metadata.labels: Invalid value: "a b": a valid label must be an empty string or ` +
			`consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
			`(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is ` +
			`'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
	"arole": {"widget", "clusterrole-widget-metrics-reader.yaml", "verbs:\n  - get", "verbs: []",
		`ClusterRole.rbac.authorization.k8s.io "arole-metrics-reader" is invalid: rules[0].verbs: Required value: verbs must ` +
			`contain at least one value`},
	"anet": {"widget", "networkpolicy-widget-np.yaml", "- Ingress", "- ingress",
		`NetworkPolicy.networking.k8s.io "anet-np" is invalid: spec.policyTypes[0]: Unsupported value: "ingress": supported ` +
			`values: "Ingress", "Egress"`},
	"aselector": {"widget", "widget.clusterserviceversion.yaml", "matchLabels:\n              app: aselector",
		"matchLabels:\n              app: other", `Deployment.apps "aselector-controller-manager" is invalid: ` +
			`spec.template.metadata.labels: Invalid value: {"app":"aselector"}: ` + "`selector` does not match template `labels`"},
	"amount": {"widget", "widget.clusterserviceversion.yaml", "              - name: manager\n",
		"              - name: manager\n                volumeMounts: [{name: gone, mountPath: /gone}]\n",
		`Deployment.apps "amount-controller-manager" is invalid: spec.template.spec.containers[0].volumeMounts[0].name: Not ` +
			`found: "gone"`},
	"aschema": {"widget", "widgets.widgets.example.com.crd.yaml", "          note:\n                type: string",
		"          note: {}", `CustomResourceDefinition.apiextensions.k8s.io "aschemas.aschemas.example.com" is invalid: ` +
			`spec.validation.openAPIV3Schema.properties[spec].properties[note].type: Required value: must not be empty for ` +
			`specified object fields`},
	"ahook": {"gadget", "gadget.clusterserviceversion.yaml", "targetPort: 9443", "targetPort: 9444",
		`Service "ahook-controller-manager-service" is invalid: spec.ports[1].name: Duplicate value: "443"`},
	"atolerate": {"widget", "widget.clusterserviceversion.yaml", "terminationGracePeriodSeconds: 10\n",
		"terminationGracePeriodSeconds: 10\n              tolerations:\n              - key: a\n" +
			"                operator: Exist\n",
		`Deployment.apps "atolerate-controller-manager" is invalid: spec.template.spec.tolerations[0].operator: ` +
			`Unsupported value: "Exist": supported values: "Equal", "Exists"`},
	"azero": {"gadget", "gadget.clusterserviceversion.yaml", "containerPort: 443\n", "containerPort: 0\n",
		`ValidatingWebhookConfiguration.admissionregistration.k8s.io "vazero.example.com" is invalid: ` +
			`webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive`},
}

// addRefusedByAPI adds the bundles of refusedByAPI.
func addRefusedByAPI(t *testing.T, bundles map[string]map[string]string, said map[string]string) {
	t.Helper()
	for pkg, c := range refusedByAPI {
		files := map[string]string{}
		for name, text := range bundles[c.of] {
			text = strings.ReplaceAll(text, c.of, pkg)
			if strings.TrimPrefix(name, "manifests/") == c.file {
				if !strings.Contains(text, c.old) {
					t.Fatalf("%s: no %q in\n%s", pkg, c.old, text)
				}
				text = strings.Replace(text, c.old, c.text, 1)
			}
			files[name] = text
		}
		bundles[pkg], said[pkg] = files, "the API server: "+c.said
	}
}

// Which APIs are served depends on the version of Kubernetes, which the answer names.
func TestKubeVersion(t *testing.T) {
	t.Parallel()
	bundles, said := clitest.ClusterBundles(t)
	addRefusedByAPI(t, bundles, said)
	dir := t.TempDir()
	for _, pkg := range []string{"apdb", "rbeta", "widget"} {
		for name, text := range bundles[pkg] {
			clitest.WriteFile(t, filepath.Join(dir, pkg, filepath.FromSlash(name)), text)
		}
		clitest.WriteFile(t, filepath.Join(dir, "catalog-"+pkg, "catalog.json"),
			clitest.CatalogOf(t, pkg, "example.com/a:v1", bundles[pkg], true))
	}
	for _, c := range []struct {
		pkg, version, assumed string
		want                  []string
	}{
		{"apdb", "", "1.36", []string{`olmv1.api-version: no matches for kind "PodDisruptionBudget" in version ` +
			`"policy/v1beta1": Kubernetes 1.25 has removed it`}},
		{"apdb", "1.24", "1.24", nil},
		{"apdb", "v1.25.3", "1.25", []string{`olmv1.api-version: no matches for kind "PodDisruptionBudget" in version ` +
			`"policy/v1beta1": Kubernetes 1.25 has removed it`}},
		{"widget", "1.21", "1.21", nil},
		{"widget", "1.20", "1.20", []string{`olmv1.api-version: no matches for kind "PodDisruptionBudget" in version ` +
			`"policy/v1": Kubernetes 1.21 brought it`}},
		{"rbeta", "1.21", "1.21", nil},
	} {
		for _, subject := range []string{c.pkg, "catalog-" + c.pkg} {
			args := []string{subject}
			if c.version != "" {
				args = append(args, "--kube-version", c.version)
			}
			r := checkReport(t, dir, args...)
			if _, _, errors := r.of(c.pkg); !slices.Equal(errors, c.want) || r.KubeVersion != c.assumed {
				t.Errorf("%v: %q (Kubernetes %s), want %q", args, errors, r.KubeVersion, c.want)
			}
		}
	}
	for args, want := range map[string]string{
		"widget --kube-version 2":                        `--kube-version: "2" is no version of Kubernetes such as 1.36`,
		"widget --kube-version 1.30 --profile conforma":  "--kube-version has no effect without --profile olmv1",
		"widget --kube-version= --profile olmv1":         "--kube-version is empty",
		"--list --kube-version 1.30":                     "--kube-version has no effect with --list",
		"--explain olmv1.api-version --kube-version 1.3": "--kube-version has no effect with --explain",
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"check"}, strings.Fields(args)...)...)
		if got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}
