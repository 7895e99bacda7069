package bundle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// All commands that read a bundle see the same: what one of them refuses, "bundle validate" and "check" call an error,
// and all name the file as the user has it, with the line. Only opm renders what contradicts the bundle.
func TestOneVerdictOnABundle(t *testing.T) {
	const properties, dependencies = "metadata/properties.yaml", "metadata/dependencies.yaml"
	commands := map[string][]string{
		"validate": {"bindery", "bundle", "validate", "b"},
		"check":    {"bindery", "check", "b", "--profile", "opm"},
		"build":    {"bindery", "build", "bundle", "b", "-t", "example.com/foo:v1", "--dry-run"},
		"render":   {"bindery", "render", "b"},
		"add":      {"bindery", "registry", "add", "-d", "index.db", "-b", "b", "--mode", "semver"},
		"opm":      {"opm", "render", "b"},
	}
	everything := "validate check build render add opm"
	for _, c := range []struct {
		name, file, old, text string
		refused               string // the commands that refuse the bundle; the others say the same as a warning
		want                  string
	}{
		{"nothing wrong", "README", "", "", "", ""},
		{"a value of another type", properties, "", "properties:\n- {type: olm.gvk, value: x}\n", everything,
			"b/metadata/properties.yaml:2:26: "},
		{"an API that is a number", properties, "", "properties:\n- type: olm.gvk\n  value: {group: a, version: 1, kind: A}\n",
			everything, "b/metadata/properties.yaml:3:30: "},
		{"prose in a README", "manifests/README.md", "", "# Title\n\nProse.\n", "", "b/manifests/README.md:3: "},
		{"a README that is no YAML", "manifests/README.md", "", "Title: a: b\n", "", "b/manifests/README.md:1"},
		{"prose in a manifest", "manifests/notes.yaml", "", "# Title\n\nProse.\n", "validate check build",
			"b/manifests/notes.yaml:3: "},
		{"another package", properties, "", "properties:\n- {type: olm.package, value: {packageName: other, " +
			"version: 3.0.0}}\n", "validate check build render add", "b/metadata/properties.yaml:2:44: "},
		{"another version", properties, "", "properties:\n- {type: olm.package, value: {packageName: foo, " +
			"version: 3.0.0}}\n", "validate check build render add", "b/metadata/properties.yaml:2:58: "},
		{"its own package", properties, "", "properties:\n- {type: olm.package, value: {packageName: foo, " +
			"version: 1.0.0}}\n", "", ""},
		{"another package in the annotation", "manifests/csv.yaml", `alm-examples: "[]"`,
			`alm-examples: "[]", olm.properties: '[{"type":"olm.package","value":{"packageName":"other"}}]'`,
			"validate check build render add", "b/manifests/csv.yaml:5:53: "},
		{"a required package that is text", properties, "", "properties:\n- {type: olm.package.required, value: x}\n",
			"validate check build render add", "b/metadata/properties.yaml:2:39: "},
		{"no range", properties, "", "properties:\n- {type: olm.package.required, value: {packageName: other, " +
			"versionRange: not a range}}\n", "validate check build", "b/metadata/properties.yaml:2:74: "},
		{"no range in a dependency", dependencies, "", "dependencies:\n- {type: olm.package, value: {packageName: other, " +
			"version: not a range}}\n", "validate check build", "b/metadata/dependencies.yaml:2:60: "},
		{"a version of a dependency that is a number", dependencies, "", "dependencies:\n- {type: olm.package, value: " +
			"{packageName: other, version: 1.0}}\n", everything, "b/metadata/dependencies.yaml:2:60: "},
		{"an empty label", dependencies, "", "dependencies:\n- {type: olm.label, value: {}}\n", "validate check build",
			"b/metadata/dependencies.yaml:2:28: "},
		{"half an API", properties, "", "properties:\n- {type: olm.gvk.required, value: {group: a, kind: A}}\n",
			"validate check build", "b/metadata/properties.yaml:2:35: "},
		{"a number in the annotations", "metadata/annotations.yaml", "channels.v1: stable", "channels.v1: 1.10", everything,
			"b/metadata/annotations.yaml:6:54: "},
		{"a version that is a number", "manifests/csv.yaml", "version: 1.0.0", "version: 1.0", everything,
			"b/manifests/csv.yaml:7:12: "},
		{"an operator that is a list", "manifests/csv.yaml", "installModes:", "customresourcedefinitions: {owned: [{name: 1}]}\n  x:",
			everything, "b/manifests/csv.yaml:11:46: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			clitest.WriteVerdictBundle(t, dir, c.file, c.old, c.text)
			refused := strings.Fields(c.refused)
			for name, args := range commands {
				got := clitest.RunProgram(t, dir, args[0], args[1:]...)
				want := 0
				for _, r := range refused {
					if r == name {
						want = 1
					}
				}
				if got.Status != want {
					t.Errorf("%s: status %d, want %d\n%s%s", name, got.Status, want, got.Stderr, got.Stdout)
				}
				said := got.Stderr
				if name == "check" {
					said = got.Stdout
				}
				if !strings.Contains(said, c.want) {
					t.Errorf("%s: want %q in\n%s", name, c.want, said)
				}
				if goName.MatchString(said) {
					t.Errorf("%s names a type of Go:\n%s", name, said)
				}
			}
		})
	}
}

// OLM v0 skips a README among the manifests with a line in its log, "opm alpha bundle validate" and OLM v1 refuse the
// bundle, and each command says so.
func TestProseAmongManifests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clitest.WriteVerdictBundle(t, dir, "manifests/README.md", "", "# Title\n\nProse.\n")
	const image = "oci:image:v1"
	for _, c := range []struct {
		line   string
		status int
		want   []string
	}{
		{"bindery build bundle b -t example.com/foo:v1 --output oci:image", 0,
			[]string{"warning: b/manifests/README.md:3: ", "OLM v0 logs that", "OLM v1 refuses the bundle: "}},
		{"bindery bundle validate " + image, 0, []string{"manifests/README.md:3: ", "OLM v1 refuses the bundle: "}},
		{"bindery check " + image, 1, []string{"warning bundle.syntax\n", "error   olmv1.unreadable\n",
			`error parsing objects in "manifests/README.md": unable to decode "manifests/README.md": json: cannot unmarshal ` +
				"string into Go value of type unstructured.detector\n"}},
		{"bindery check b --profile opm", 0, []string{"warning bundle.syntax\n"}},
		{"bindery bundle extract b -c x --dry-run", 0, []string{"README.md: "}},
		{"bindery bundle unpack " + image + " --out files", 0, []string{"wrote 3 files"}},
		{"bindery bundle generate b/manifests -p foo -c stable --output-dir out", 0, nil},
		{"bindery render " + image, 0, []string{`"name": "foo.v1.0.0"`}},
		{"opm alpha bundle validate -t " + image, 1, []string{"Bundle validation errors: not a Kubernetes object"}},
		{"bindery bundle manifests b", 1, []string{`error parsing objects in "manifests/README.md"`}},
	} {
		args := strings.Fields(c.line)
		got := clitest.RunProgram(t, dir, args[0], args[1:]...)
		if got.Status != c.status {
			t.Errorf("%s: status %d, want %d\n%s%s", c.line, got.Status, c.status, got.Stderr, got.Stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stdout+got.Stderr, want) {
				t.Errorf("%s: want %q in\n%s%s", c.line, want, got.Stderr, got.Stdout)
			}
		}
	}
}

// A number where a version is meant loses zeros, and of two properties OLM uses none: a warning of "bundle validate",
// and an error of "check", on bundles and on catalogs. What takes no number at all is an error of both.
func TestVersionsThatAreNumbers(t *testing.T) {
	const properties = "metadata/properties.yaml"
	for _, c := range []struct {
		name, file, old, text string
		validate              int
		want                  string
	}{
		{"a property", properties, "", "properties:\n- type: olm.maxOpenShiftVersion\n  value: 4.20\n", 0,
			"b/metadata/properties.yaml:3:10: |the version 4.20 is a number, which becomes 4.2: put it in quotes"},
		{"a version that keeps its digits", properties, "", "properties:\n- {type: olm.maxOpenShiftVersion, value: 4.19}\n",
			0, "b/metadata/properties.yaml:2:42: |the version 4.19 is a number: put it in quotes"},
		{"a version in a property of somebody", properties, "", "properties:\n- {type: acme, value: [{minVersion: 1.10}]}\n",
			0, "b/metadata/properties.yaml:2:37: |the version 1.10 is a number, which becomes 1.1: put it in quotes"},
		{"a property twice", properties, "", "properties:\n- {type: olm.maxOpenShiftVersion, value: '4.19'}\n" +
			"- {type: olm.maxOpenShiftVersion, value: '4.20'}\n", 0,
			"b/metadata/properties.yaml:3:42: |the first one is in metadata/properties.yaml:2"},
		{"in the annotation", "manifests/csv.yaml", `alm-examples: "[]"`, `alm-examples: "[]", olm.properties: ` +
			`'[{"type":"olm.maxOpenShiftVersion","value":4.20}]'`, 0,
			"b/manifests/csv.yaml:5:53: |the version 4.20 is a number"},
		{"a release", "manifests/csv.yaml", "version: 1.0.0\n", "version: 1.0.0\n  release: 1.10\n", 1,
			"b/manifests/csv.yaml:8:12: |is a number, expected a string (write it in quotes"},
		{"the lowest Kubernetes", "manifests/csv.yaml", "minKubeVersion: 1.20.0", "minKubeVersion: 1.20", 1,
			"b/manifests/csv.yaml:9:19: |is a number, expected a string (write it in quotes"},
		{"the version", "manifests/csv.yaml", "version: 1.0.0", "version: 1.0", 1,
			"b/manifests/csv.yaml:7:12: |is a number, expected a string (write it in quotes"},
		{"an annotation", "metadata/annotations.yaml", "annotations:", "annotations:\n  com.redhat.openshift.versions: 4.20",
			1, "b/metadata/annotations.yaml:2:34: |is a number, expected a string (write it in quotes"},
		{"a range of a dependency", "metadata/dependencies.yaml", "",
			"dependencies:\n- {type: olm.package, value: {packageName: a, version: 1.20}}\n", 1,
			"b/metadata/dependencies.yaml:2:56: |is a number, expected a string (write it in quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			clitest.WriteVerdictBundle(t, dir, c.file, c.old, c.text)
			validate := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "b")
			check := clitest.RunProgram(t, dir, "bindery", "check", "b", "--profile", "opm")
			if validate.Status != c.validate || check.Status != 1 {
				t.Errorf("status %d and %d\n%s%s", validate.Status, check.Status, validate.Stderr, check.Stdout)
			}
			for want := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(validate.Stderr, want) || !strings.Contains(check.Stdout, want) {
					t.Errorf("want %q in\n%s\nand\n%s", want, validate.Stderr, check.Stdout)
				}
			}
		})
	}
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "catalog", "foo.yaml"), `schema: olm.package
name: foo
defaultChannel: stable
---
schema: olm.channel
package: foo
name: stable
entries: [{name: foo.v1.0.0}]
---
schema: olm.bundle
package: foo
name: foo.v1.0.0
image: example.com/foo:v1
properties:
- {type: olm.package, value: {packageName: foo, version: 1.0.0}}
- {type: olm.maxOpenShiftVersion, value: 4.20}
- {type: olm.maxOpenShiftVersion, value: "4.21"}
`)
	got := clitest.RunProgram(t, dir, "bindery", "check", "catalog")
	for _, want := range []string{"catalog/foo.yaml:16:42: ", "catalog/foo.yaml:17:3: ", "failed: 2 errors"} {
		if got.Status != 1 || !strings.Contains(got.Stdout, want) {
			t.Errorf("want %q in %+v", want, got)
		}
	}
}

// OLM v1 and OLM v0 are two programs: "bundle validate" warns of all that the rules of OLM v1 find, and opm of nothing of it.
func TestBundleValidateWarnsOfOLMv1(t *testing.T) {
	const csv = "manifests/csv.yaml"
	for _, c := range []struct{ name, file, old, text string }{
		{"no install mode of the cluster", csv, "AllNamespaces", "OwnNamespace"},
		{"an API service", csv, "  installModes:", "  apiservicedefinitions: {owned: [{name: a, group: b.io, version: v1, " +
			"kind: A, deploymentName: a}]}\n  installModes:"},
		{"a deployment's name", csv, "deployments: []", "deployments: [{name: A_b, spec: {selector: {}, template: {}}}]"},
		{"a webhook of no deployment", csv, "  installModes:", "  webhookdefinitions:\n  - {type: " +
			"ValidatingAdmissionWebhook, generateName: a.b.io, deploymentName: none, sideEffects: None, " +
			"admissionReviewVersions: [v1], containerPort: 443}\n  installModes:"},
		{"a dependency", "metadata/dependencies.yaml", "", "dependencies:\n- type: olm.package\n  value: {packageName: a, " +
			"version: '>=1.0.0'}\n"},
		{"a required API", csv, "  installModes:", "  customresourcedefinitions: {required: [{name: as.b.io, version: v1, " +
			"kind: A}]}\n  installModes:"},
		{"a kind behind the first", "manifests/two.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n" +
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"},
		{"another name of the annotations", "metadata/other.yaml", "", clitest.VerdictBundle["metadata/annotations.yaml"]},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			clitest.WriteVerdictBundle(t, dir, c.file, c.old, c.text)
			if strings.HasPrefix(c.name, "another name") {
				if err := os.Remove(filepath.Join(dir, "b/metadata/annotations.yaml")); err != nil {
					t.Fatal(err)
				}
			}
			var answer struct {
				Findings []struct{ Rule, Severity, File, Message string }
			}
			check := clitest.RunProgram(t, dir, "bindery", "check", "b", "--profile", "olmv1", "-o", "json")
			if err := json.Unmarshal([]byte(check.Stdout), &answer); err != nil || len(answer.Findings) == 0 {
				t.Fatalf("%v: %+v", err, check)
			}
			validate := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "b")
			for _, f := range answer.Findings {
				if !regexp.MustCompile(`(?m)^warning: b/` + regexp.QuoteMeta(f.File) + `[:0-9]* .*OLM v1 refuses the bundle: ` +
					regexp.QuoteMeta(f.Message)).MatchString(validate.Stderr) {
					t.Errorf("no warning of %+v in\n%s", f, validate.Stderr)
				}
			}
			strict := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "b", "--strict")
			opm := clitest.RunProgram(t, dir, "opm", "alpha", "bundle", "validate", "-t", "b")
			if strict.Status != 1 || opm.Status != validate.Status || strings.Contains(opm.Stderr, "OLM v1") {
				t.Errorf("status %d, strict %d, opm %d\n%s\n%s", validate.Status, strict.Status, opm.Status, validate.Stderr, opm.Stderr)
			}
		})
	}
}

// The reasons for which manifests were passed over are part of the error of every command, at their place; warnings of
// other files are given all the same.
func TestPassedOverManifestsAreInTheError(t *testing.T) {
	dir := t.TempDir()
	lines := strings.Count(clitest.VerdictBundle["manifests/csv.yaml"], "\n")
	clitest.WriteVerdictBundle(t, dir, "manifests/csv.yaml", "- {type: AllNamespaces, supported: true}\n",
		"- {type: AllNamespaces, supported: true}\nfoobar\n")
	clitest.WriteFile(t, filepath.Join(dir, "b/metadata/twice.yaml"), "a: 1\na: 2\n")
	clitest.WriteFile(t, filepath.Join(dir, "pm/1/csv.yaml"), clitest.VerdictBundle["manifests/csv.yaml"]+"foobar\n")
	clitest.WriteFile(t, filepath.Join(dir, "pm/package.yaml"),
		"packageName: foo\nchannels: [{name: stable, currentCSV: foo.v1.0.0}]\n")
	clitest.WriteFile(t, filepath.Join(dir, "template.yaml"),
		"schema: olm.semver\ngenerateMajorChannels: true\nstable: {bundles: [{image: 'oci:layout:v1'}]}\n")
	build := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "b", "--output", "oci:layout:v1", "--skip-validation")
	if build.Status != 0 {
		t.Fatal(build.Stderr)
	}
	place := fmt.Sprintf("manifests/csv.yaml:%d: yaml: could not find expected ':'; the file is passed over", lines+1)
	for command, want := range map[string]string{
		"bindery bundle validate b": "b/" + place, "bindery check b --profile opm": "b/" + strings.Replace(place, " yaml", " foo: yaml", 1),
		"bindery render b": "b/" + place, "opm render b": "b/" + place, "bindery diff b b": "b/" + place,
		"bindery registry add -d index.db -b b": "b/" + place, "bindery build bundle b -t example.com/b:v1": "b/" + place,
		"bindery catalog add --create catalog b":               "b/" + place,
		"bindery render oci:layout:v1":                         place,
		"bindery alpha render-template semver template.yaml":   place,
		"opm alpha render-template semver template.yaml":       place,
		"bindery bundle validate oci:layout:v1":                place,
		"bindery bundle unpack oci:layout:v1 -o out":           place,
		"bindery registry add -d index.db -b oci:layout:v1":    place,
		"bindery index add --bundles oci:layout:v1 --generate": place,
		"bindery render pm":                                    "1/csv.yaml:",
		"bindery migrate pm out":                               "1/csv.yaml:",
		"bindery bundle generate pm/1":                         "1/csv.yaml is passed over: yaml: ",
	} {
		t.Run(command, func(t *testing.T) {
			args := strings.Fields(command)
			got := clitest.RunProgram(t, dir, args[0], args[1:]...)
			said := got.Stderr
			if args[1] == "check" {
				said = got.Stdout
			}
			_, failure, _ := strings.Cut(said, "error")
			if args[0] == "opm" {
				failure = said
			}
			if got.Status == 0 || !strings.Contains(failure, want) {
				t.Errorf("want status 1 and %q in %+v", want, got)
			}
			if !strings.HasPrefix(want, "1/") && !strings.Contains(said, `duplicate key`) {
				t.Errorf("the warning of another file is lost: %s", said)
			}
		})
	}
}

// What makes the annotations unreadable is in the error itself, which is all that --quiet prints.
func TestWrongAnnotationsAreInTheError(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteVerdictBundle(t, dir, "metadata/annotations.yaml", "channels.v1: stable", "channels.v1: 1.10")
	for _, name := range []string{"bindery", "opm"} {
		got := clitest.RunProgram(t, dir, name, "render", "b")
		if name == "bindery" {
			got = clitest.RunProgram(t, dir, name, "-q", "render", "b")
		}
		want := `b/metadata/annotations.yaml:6:54: annotations[operators.operatorframework.io.bundle.channels.v1]: ` +
			`the value of an annotation is a number, expected a string (write it in quotes: "1.10")`
		if got.Status == 0 || strings.Count(got.Stderr, want) != 1 {
			t.Errorf("%s: want %q once in %+v", name, want, got)
		}
	}
}

// A manifest that cannot be read decides on the media type: without a word it would be that of other bundles.
func TestUnreadManifestAndMediaType(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteVerdictBundle(t, dir, "manifests/csv.yaml", "supported: true}\n", "supported: true}\nfoobar\n")
	got := clitest.RunProgram(t, dir, "bindery", "bundle", "generate", "b", "-p", "foo", "-c", "x", "--output-dir", "out")
	if got.Status != 0 || !strings.Contains(got.Stderr, `warning: csv.yaml cannot be read, and the media type is "plain" without it: yaml: `) {
		t.Errorf("%+v", got)
	}
	got = clitest.RunProgram(t, dir, "opm", "alpha", "bundle", "generate", "-d", "b/manifests", "-p", "foo", "-c", "x", "-u", "out2")
	if got.Status != 0 || strings.Contains(got.Stderr, "cannot be read") {
		t.Errorf("%+v", got)
	}
}

// crdOfTheBundle is a definition without a mistake, of v1.
const crdOfTheBundle = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.b.io}
spec:
  group: b.io
  names: {kind: A, plural: as, singular: a, listKind: AList}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: a, namespace: b, port: 443}}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: X, type: string, jsonPath: .a}
    subresources:
      scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.b}
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}
`

// Errors of definitions have the field and the place of the user's file and not those of the API server's internal form;
// of a field of v1beta1 they say what to write.
func TestErrorsOfDefinitionsAreInTheWordsOfTheFile(t *testing.T) {
	for _, c := range []struct{ name, old, text, want string }{
		{"nothing wrong", "", "", ""},
		{"a port", "port: 443", "port: 99999",
			"  b/manifests/crd.yaml:12:61: spec.conversion.webhook.clientConfig.service.port: Invalid value: 99999"},
		{"no review versions", "      conversionReviewVersions: [v1]\n", "",
			"  b/manifests/crd.yaml:11:7: spec.conversion.webhook.conversionReviewVersions: Required value\n"},
		{"the type of a column", "type: string, jsonPath", "type: nope, jsonPath",
			"  b/manifests/crd.yaml:18:23: spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"nope\""},
		{"no path of a column", ", jsonPath: .a", "",
			"  b/manifests/crd.yaml:18:7: spec.versions[0].additionalPrinterColumns[0].jsonPath: Required value\n"},
		{"a path of the replicas", ".spec.a", ".a",
			"  b/manifests/crd.yaml:20:33: spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".a\""},
		{"a path in the status", ".status.b", ".b", "warning: b/manifests/crd.yaml:20:62: " +
			"spec.versions[0].subresources.scale.statusReplicasPath: clusters refuse the definition: Invalid value: \".b\""},
		{"a type in the schema", "a: {type: string}", "a: {type: nope}", "warning: b/manifests/crd.yaml:22:96: " +
			"spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type: clusters refuse the definition: "},
		{"a name that is a boolean", "{name: X,", "{name: Y,", "  b/manifests/crd.yaml:18:14: " +
			"spec.versions[0].additionalPrinterColumns[0].name: CustomResourceDefinition \"as.b.io\" cannot be read: " +
			"is a boolean, expected a string (write it in quotes"},
		{"the webhook of v1beta1", "    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig: {service",
			"    webhook: {conversionReviewVersions: [v1]}\n    webhookClientConfig: {service",
			"  b/manifests/crd.yaml:11:26: spec.conversion.webhook.clientConfig: Required value: required when strategy is " +
				"set to Webhook; spec.conversion.webhookClientConfig is a field of v1beta1 that means nothing in " +
				"apiextensions.k8s.io/v1: write spec.conversion.webhook.clientConfig\n"},
		{"the schema of v1beta1", "    schema:\n      openAPIV3Schema:", "  validation:\n      openAPIV3Schema:",
			"warning: b/manifests/crd.yaml:22:7: spec.versions[0].schema.openAPIV3Schema: clusters refuse the definition: " +
				"Required value; spec.validation is a field of v1beta1 that means nothing in apiextensions.k8s.io/v1: " +
				"write spec.versions[0].schema\n"},
		{"a column of v1beta1", "jsonPath: .a", "JSONPath: .a", "warning: b/manifests/crd.yaml:18:41: " +
			"spec.versions[0].additionalPrinterColumns[0].JSONPath: a field of v1beta1 that means nothing in " +
			"apiextensions.k8s.io/v1: write spec.versions[0].additionalPrinterColumns[0].jsonPath\n"},
		{"a definition of v1beta1", "io/v1\n", "io/v1beta1\n", "  b/manifests/crd.yaml:9:5: spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook; write it as spec.conversion.webhook.clientConfig of apiextensions.k8s.io/v1\n"},
		{"a port of v1beta1", crdOfTheBundle, strings.NewReplacer("io/v1\n", "io/v1beta1\n", "    webhook:\n", "",
			"      conversionReviewVersions", "    conversionReviewVersions", "      clientConfig", "    webhookClientConfig",
			"443", "99999", "jsonPath", "JSONPath", "  group:", "  preserveUnknownFields: false\n  group:").
			Replace(crdOfTheBundle), "  b/manifests/crd.yaml:12:66: spec.conversion.webhookClientConfig.service.port: Invalid " +
			"value: 99999: port is not valid: must be between 1 and 65535, inclusive; write it as " +
			"spec.conversion.webhook.clientConfig.service.port of apiextensions.k8s.io/v1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(crdOfTheBundle, c.old) {
				t.Fatalf("no %q", c.old)
			}
			dir := t.TempDir()
			clitest.WriteVerdictBundle(t, dir, "manifests/crd.yaml", "", strings.Replace(crdOfTheBundle, c.old, c.text, 1))
			got := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "b")
			if !strings.Contains(got.Stderr, c.want) || got.Status == 0 == strings.HasPrefix(c.want, "  ") {
				t.Errorf("want %q in %d\n%s", c.want, got.Status, got.Stderr)
			}
			if c.want == "" && strings.Count(got.Stderr, "\n") != 2 { // that no ClusterServiceVersion owns it, and the verdict
				t.Error(got.Stderr)
			}
		})
	}
}

var goName = regexp.MustCompile(`cannot unmarshal|Go (value|struct)`)
