package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// upgradesDir returns a directory with the bundles whose definitions change, and with the catalogs "full", which has their
// manifests, and "bare", which has not. If host is not empty the images of the bundles are there.
func upgradesDir(t *testing.T, host string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range recorded.Archive(t, "../../../testdata/olmv1/upgrades.tar.zst") {
		clitest.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), string(text))
	}
	var bundles []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		bundles = append(bundles, e.Name())
		if pkg, version, _ := strings.Cut(e.Name(), "-"); host != "" {
			clitest.Done(t, dir, "bindery", "build", "bundle", e.Name(), "--skip-validation", "-t", host+"/acme/"+pkg+":"+version,
				"--push", "--use-http")
		}
	}
	if host == "" {
		host = "registry.example.com"
	}
	for name, more := range map[string][]string{"full": nil, "bare": {"--migrate"}} {
		args := slices.Concat([]string{"render", "--image-ref-template", host + "/acme/{{.Package}}:{{.Version}}"}, more,
			bundles)
		clitest.WriteFile(t, filepath.Join(dir, name, "bundles.json"), clitest.Done(t, dir, "bindery", args...))
		clitest.WriteFile(t, filepath.Join(dir, name, "channels.yaml"), upgradeChannels)
	}
	return dir
}

const upgradeChannels = `---
{schema: olm.package, name: safe, defaultChannel: stable}
---
{schema: olm.channel, package: safe, name: stable, entries: [{name: safe.v1.0.0}, {name: safe.v1.1.0, replaces: safe.v1.0.0}]}
---
{schema: olm.package, name: gadget, defaultChannel: alpha}
---
{schema: olm.channel, package: gadget, name: alpha, entries: [{name: gadget.v0.1.0}, {name: gadget.v0.2.0, replaces: gadget.v0.1.0}]}
---
{schema: olm.package, name: enumo, defaultChannel: stable}
---
{schema: olm.channel, package: enumo, name: stable, entries: [{name: enumo.v1.0.0}, {name: enumo.v1.1.0, replaces: enumo.v1.0.0},
  {name: enumo.v1.2.0, skipRange: '<1.2.0'}, {name: enumo.v1.3.0, replaces: enumo.v1.2.0, skips: [enumo.v1.1.0]}]}
---
{schema: olm.channel, package: enumo, name: fast, entries: [{name: enumo.v1.2.0, replaces: enumo.v1.0.0}, {name: enumo.v1.5.0,
  replaces: enumo.v1.2.0}]}
---
{schema: olm.channel, package: enumo, name: slow, entries: [{name: enumo.v1.0.0}, {name: enumo.v1.4.0, replaces: enumo.v1.0.0}]}
`

// recordedRefusal returns the message of the cluster's ClusterExtension, and the lines of it after the first words.
func recordedRefusal(t *testing.T, dir string) (message, first string, lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ce-safe.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ce struct {
		Status struct {
			Conditions []struct{ Type, Message string }
		}
	}
	if err := json.Unmarshal(text, &ce); err != nil {
		t.Fatal(err)
	}
	for _, c := range ce.Status.Conditions {
		if c.Type == "Progressing" {
			message = c.Message
		}
	}
	const about = `validating upgrade for CRD "safes.safes.example.com": `
	first, rest, ok := strings.Cut(message, about)
	if !ok {
		t.Fatalf("the recording has %q", message)
	}
	lines = strings.Split(rest, "\n")
	slices.Sort(lines)
	return message, first, lines
}

// refusalLines returns the lines of a message about the definition, sorted.
func refusalLines(message string) []string {
	_, rest, _ := strings.Cut(message, `validating upgrade for CRD "safes.safes.example.com": `)
	lines := strings.Split(rest, "\n")
	slices.Sort(lines)
	return lines
}

// What the cluster said of an upgrade, every command says: of two bundles, of a catalog with manifests, of one without
// by the images, and of what resolves.
func TestRefusedUpgradeAsRecorded(t *testing.T) {
	r := testregistry.New(t)
	dir := upgradesDir(t, r.Host())
	_, first, want := recordedRefusal(t, dir)
	report := func(args ...string) *rules.Report {
		got := clitest.RunProgram(t, dir, "bindery", append(args, "--profile", "olmv1", "-o", "json")...)
		var out rules.Report
		if err := json.Unmarshal([]byte(got.Stdout), &out); err != nil || got.Status != 1 || out.Upgrades == nil {
			t.Fatalf("%v: %v, %+v", args, err, got)
		}
		return &out
	}
	for _, args := range []string{
		"check safe-1.1.0 --from safe-1.0.0",
		"check safe-1.1.0 --use-http --from " + r.Host() + "/acme/safe:1.0.0",
		"check " + r.Host() + "/acme/safe:1.1.0 --use-http --from safe-1.0.0",
		"check full --upgrades",
		"check bare --upgrades --pull --use-http",
	} {
		var found []string
		for _, f := range report(strings.Fields(args)...).Findings {
			if f.Rule == rules.RuleUpgrade.ID && f.Bundle == "safe.v1.1.0" {
				found = append(found, f.Message)
			}
		}
		if len(found) != 1 || !strings.HasPrefix(found[0], "safe.v1.0.0 -> safe.v1.1.0") ||
			!slices.Equal(refusalLines(found[0]), want) {
			t.Errorf("%s: %q, want %q", args, found, want)
		}
	}
	for _, args := range []string{"resolve safe full --installed 1.0.0", "resolve safe full --installed safe.v1.0.0 -o json",
		"resolve safe bare --installed safe.v1.0.0 --pull --use-http", "resolve safe bare full --priority full=1 --installed 1.0.0"} {
		got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(args), "--error-format", "json")...)
		var e struct{ Message string }
		notes := strings.Split(strings.TrimSpace(got.Stderr), "\n") // the images that were opened
		if err := json.Unmarshal([]byte(notes[len(notes)-1]), &e); err != nil || got.Status != 1 || got.Stdout != "" ||
			!strings.HasPrefix(e.Message, first) || !slices.Equal(refusalLines(e.Message), want) {
			t.Errorf("%s: %v, %+v", args, err, got)
		}
	}
	got := clitest.RunProgram(t, dir, "bindery", "diff", "--manifests", "safe-1.0.0", "safe-1.1.0")
	for _, line := range want {
		if !strings.Contains(got.Stdout, "\n        "+line+"\n") {
			t.Errorf("diff lacks %q:\n%s", line, got.Stdout)
		}
	}
}

// Each edge of the channels is judged once, whatever allows it: an entry that replaces, one that skips, a range.
func TestUpgradesOfACatalog(t *testing.T) {
	dir := upgradesDir(t, "")
	got := clitest.RunProgram(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades", "-o", "json")
	var report rules.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || got.Status != 1 {
		t.Fatalf("%v: %+v", err, got)
	}
	var edges []string
	for _, refusal := range report.Upgrades.Refusals {
		_, what, _ := strings.Cut(refusal.Message, `: `)
		for _, from := range refusal.From {
			edges = append(edges, fmt.Sprintf("%s -> %s (%s): %s", from.Bundle, refusal.Bundle,
				strings.Join(from.Channels, ", "), strings.ReplaceAll(what, "\n", "; ")))
		}
	}
	want := []string{
		`enumo.v1.0.0 -> enumo.v1.1.0 (stable): v1: ^.spec.color: enum: allowed enum values removed : ["blue"]`,
		`enumo.v1.0.0 -> enumo.v1.2.0 (fast, stable): v1: ^.spec.false: maximum: maximum decreased : 10 -> 5`,
		`enumo.v1.1.0 -> enumo.v1.2.0 (stable): v1: ^.spec.false: maximum: maximum decreased : 10 -> 5`,
		`enumo.v1.1.0 -> enumo.v1.3.0 (stable): v1: ^.spec.color: default: default value changed : "\"red\"" -> "\"blue\""`,
		`enumo.v1.2.0 -> enumo.v1.3.0 (stable): v1: ^.spec.color: default: default value changed : "\"red\"" -> "\"blue\""`,
		`enumo.v1.2.0 -> enumo.v1.5.0 (fast): scope: scope changed : "Namespaced" -> "Cluster"`,
	}
	if edges = slices.DeleteFunc(edges, func(e string) bool { return strings.HasPrefix(e, "safe.") }); !slices.Equal(edges, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(edges, "\n"), strings.Join(want, "\n"))
	}
	// Two more are allowed: enumo.v1.0.0 -> enumo.v1.4.0 loses a limit, and gadget.v0.2.0 has a conversion webhook.
	u := report.Upgrades
	if u.Judged != 9 || u.Refused != 7 || u.Unknown != 0 || u.LeftOut != 0 {
		t.Errorf("%+v", u)
	}
	for _, b := range report.Bundles {
		if b.State != rules.Installable {
			t.Errorf("%s is %s: an upgrade that is refused does not refuse a bundle", b.Bundle, b.State)
		}
	}
	text := clitest.RunProgram(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades").Stdout
	for _, want := range []string{
		"enumo.v1.0.0, enumo.v1.1.0 -> enumo.v1.2.0 (fast, stable): validating upgrade for CRD",
		"\n        v1: ^.spec.color: type: type changed : \"string\" -> \"\"\n",
		"\nupgrades: 9 judged, 7 refused\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for format, want := range map[string]string{"sarif": `"ruleId": "olmv1.crd-upgrade"`, "junit": "olmv1.crd-upgrade"} {
		if got := clitest.RunProgram(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades", "-o", format); got.Status !=
			1 || !strings.Contains(got.Stdout, want) {
			t.Errorf("%s: %+v", format, got)
		}
	}
	waived := "waivers:\n- {rule: olmv1.crd-upgrade, reason: known, until: 2999-01-01}\n"
	clitest.WriteFile(t, filepath.Join(dir, "waivers.yaml"), waived)
	clitest.Done(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades", "--waivers", "waivers.yaml")
	clitest.Done(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades", "--skip", "olmv1.crd-upgrade")
}

// Without manifests it is said what is not known, and a bundle that OLM v1 refuses has no upgrades.
func TestUnknownUpgrades(t *testing.T) {
	dir := upgradesDir(t, "")
	text := clitest.Done(t, dir, "bindery", "check", "bare", "--profile", "olmv1", "--upgrades")
	for _, want := range []string{"\nupgrades: 0 judged, 0 refused\n",
		"not known: whether OLM v1 takes 9 upgrades; the manifests of 10 bundles are not known, --pull reads their images\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text = clitest.RunProgram(t, dir, "bindery", "check", "full", "--profile", "olmv1", "--upgrades", "--cert-provider", "none").Stdout
	if !strings.Contains(text, "upgrades: 8 judged, 7 refused, 1 left out: OLM v1 does not install a bundle of them\n") {
		t.Error(text)
	}
	for _, c := range []struct{ args, stdout, stderr string }{
		{"resolve safe bare --installed 1.0.0 -o json", `"judged": false`, "--pull reads its image"},
		{"resolve safe bare --installed 1.0.0", "bundle:    safe.v1.1.0", `the catalog has no manifests of the bundle "safe.v1.1.0"`},
		{"resolve safe full --installed safe.v0.9.0=1.0.0 --self-certified", "safe.v1.1.0", `no catalog has the bundle "safe.v0.9.0"`},
		{"resolve safe full --installed 1.0.0 --crd-upgrade-safety None -o json", `"reason": "--crd-upgrade-safety None"`, ""},
		{"resolve gadget full --installed 0.1.0 -o json", `"judged": true`, ""},
		{"resolve safe full --installed 1.1.0", "it is installed", ""},
		{"resolve safe full", "safe.v1.1.0", ""},
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(c.args)...)
		if got.Status != 0 || !strings.Contains(got.Stdout, c.stdout) || !strings.Contains(got.Stderr, c.stderr) ||
			c.stderr == "" && got.Stderr != "" {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

// Each upgrade that follows is judged, too. A refused one is shown in its place, and the answer is still the first one.
func TestUpgradesThatFollow(t *testing.T) {
	r := testregistry.New(t)
	dir := upgradesDir(t, r.Host())
	const line = `---
{schema: olm.channel, package: enumo, name: line, entries: [{name: enumo.v1.0.0}, {name: enumo.v1.4.0, replaces: enumo.v1.0.0},
  {name: enumo.v1.5.0, replaces: enumo.v1.4.0}]}
`
	clitest.WriteFile(t, filepath.Join(dir, "full", "line.yaml"), line)
	clitest.WriteFile(t, filepath.Join(dir, "bare", "line.yaml"), line)
	const refused = "then:      enumo.v1.5.0 (1.5.0)\n" +
		`refused:   validating upgrade for CRD "enums.enums.example.com": existingFieldRemoval: removed field : v1.^.spec.m` + "\n" +
		`refused:   scope: scope changed : "Namespaced" -> "Cluster"` + "\n"
	const unread = "1 of 1 upgrades that follow were not judged by their CustomResourceDefinitions: "
	for _, c := range []struct{ args, stdout, json, stderr string }{
		{"full --installed 1.0.0 --path", refused, `"refused": "validating upgrade for CRD`, ""},
		{"full --installed 1.0.0", refused, `"refused": "validating upgrade for CRD`, ""},
		{"full --installed enumo.v0.9.0=0.9.0 --self-certified --version 1.4.0||1.5.0 --crd-upgrade-safety None",
			"then:      no upgrade\n", `"reason": "--crd-upgrade-safety None"`, ""},
		{"full --installed 1.0.0 --crd-upgrade-safety None", "then:      enumo.v1.5.0 (1.5.0)\n",
			`"reason": "--crd-upgrade-safety None"`, ""},
		{"bare --installed 1.0.0 --pull --use-http", refused, `"refused": "validating upgrade for CRD`, ""},
		{"bare --installed 1.0.0", "then:      enumo.v1.5.0 (1.5.0)\n", `"judged": false`, unread},
	} {
		args := append([]string{"resolve", "enumo", "--channel", "line"}, strings.Fields(c.args)...)
		got := clitest.RunProgram(t, dir, "bindery", args...)
		if got.Status != 0 || !strings.Contains(got.Stdout, c.stdout) || !strings.Contains(got.Stderr, c.stderr) {
			t.Errorf("%s: %+v", c.args, got)
		}
		if got = clitest.RunProgram(t, dir, "bindery", append(args, "-o", "json")...); !strings.Contains(got.Stdout, c.json) {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

// With --pull the image of the bundle that is resolved decides whether OLM v1 installs it.
func TestResolvePull(t *testing.T) {
	r := testregistry.New(t)
	dir := upgradesDir(t, r.Host())
	csv := filepath.Join(dir, "gadget-0.2.0", "manifests", "gadget.clusterserviceversion.yaml")
	text, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	got := clitest.Done(t, dir, "bindery", "resolve", "gadget", "bare", "--pull", "--use-http", "-o", "json")
	if strings.Contains(got, "upgradeSafety") {
		t.Error(got)
	}
	clitest.WriteFile(t, csv, strings.ReplaceAll(string(text), "generateName: vgadget.example.com", "generateName: V"))
	clitest.Done(t, dir, "bindery", "build", "bundle", "gadget-0.2.0", "--skip-validation", "-t", r.Host()+"/acme/gadget:0.2.0", "--push",
		"--use-http")
	refused := clitest.RunProgram(t, dir, "bindery", "resolve", "gadget", "bare", "--pull", "--use-http", "--error-format", "json")
	if err := clitest.Failed(refused, 3, `error for resolved bundle "gadget.v0.2.0" with version "0.2.0": `); err != nil {
		t.Error(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "gadget-0.2.0", "manifests", "x.yaml"), "not an object")
	clitest.Done(t, dir, "bindery", "build", "bundle", "gadget-0.2.0", "--skip-validation", "-t", r.Host()+"/acme/gadget:0.2.0", "--push",
		"--use-http")
	refused = clitest.RunProgram(t, dir, "bindery", "resolve", "gadget", "bare", "--pull", "--use-http", "--error-format", "json")
	if err := clitest.Failed(refused, 3, `error for resolved bundle "gadget.v0.2.0" with version "0.2.0": `); err != nil {
		t.Error(err)
	}
}

func TestUpgradeFlags(t *testing.T) {
	dir := upgradesDir(t, "")
	for _, c := range []struct {
		args  string
		class int
		part  string
	}{
		{"check full --from safe-1.0.0", 3, "it is a catalog"},
		{"check safe-1.1.0 --upgrades", 3, "it is a bundle"},
		{"check safe-1.1.0 --from gadget-0.1.0", 3, `of the package "gadget"`},
		{"check safe-1.1.0 --from full", 3, "not a bundle"},
		{"check full --upgrades --from safe-1.0.0", 2, "say one of them"},
		{"check full --profile opm --upgrades", 2, "--upgrades has no effect without --profile olmv1"},
		{"check safe-1.1.0 --from=", 2, "--from is empty"},
		{"resolve safe full --installed 1.0.0 --crd-upgrade-safety Some", 2, "expected (Strict|None)"},
		{"resolve safe full --v0 --pull", 2, "--pull has no effect with --v0"},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(c.args), "--error-format", "json")...)
		if err := clitest.Failed(got, c.class, c.part); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// Many fields below a field with a long name take neither memory nor pages: what changes is not said for each.
func TestUpgradeOfLongNames(t *testing.T) {
	dir := upgradesDir(t, "")
	definition := filepath.Join("manifests", "safes.safes.example.com.crd.yaml")
	for name, kind := range map[string]string{"safe-1.0.0": "string", "safe-1.1.0": "integer"} {
		file := filepath.Join(dir, name, definition)
		var fields strings.Builder
		for i := range 300 {
			fmt.Fprintf(&fields, "f%d: {type: %s}, ", i, kind)
		}
		clitest.WriteFile(t, file, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: safes.safes.example.com}
spec:
  group: safes.example.com
  scope: Namespaced
  names: {kind: Safe, plural: safes, singular: safe, listKind: SafeList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {? %s : {type: object, properties: {%s}}}}}}
`, strings.Repeat("p", 400<<10), fields.String()))
	}
	got := clitest.RunProgram(t, dir, "bindery", "check", "safe-1.1.0", "--from", "safe-1.0.0", "--profile", "olmv1")
	if !strings.Contains(got.Stdout, "cannot be compared: limit exceeded") || len(got.Stdout) > 1<<16 {
		t.Errorf("%d bytes: %.2000s", len(got.Stdout), got.Stdout)
	}
	got = clitest.RunProgram(t, dir, "bindery", "diff", "--manifests", "safe-1.0.0", "safe-1.1.0")
	if !strings.Contains(got.Stdout, "limit exceeded") || len(got.Stdout) > 2<<20 {
		t.Errorf("%d bytes: %.2000s", len(got.Stdout), got.Stdout)
	}
}
