package check_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// recordedExtension is a ClusterExtension as a cluster has it.
type recordedExtension struct {
	Spec struct {
		Source struct {
			Catalog struct {
				Channels             []string
				PackageName, Version string
				Selector             struct {
					MatchExpressions []struct{ Values []string }
				}
			}
		}
	}
	Status struct {
		Conditions []struct{ Type, Message, Status string }
		Install    struct {
			Bundle struct{ Name, Version string }
		}
	}
}

// message returns the message of a condition; empty if its status is False.
func (e recordedExtension) message(kind string) string {
	for _, c := range e.Status.Conditions {
		if c.Type == kind && c.Status != "False" {
			return c.Message
		}
	}
	return ""
}

// ownCatalogs returns a directory with the catalogs that the cluster had, by their names.
func ownCatalogs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, file := range map[string]string{"none": "own1", "zstd": "own1", "own": "own4"} {
		clitest.WriteFile(t, filepath.Join(dir, name, "catalog.json"), clitest.ReadFile(t, "../../../testdata/olmv1/cluster/"+file+".jsonl"))
	}
	return dir
}

// Each constraint that an API server took or refused.
func TestResolveVersionsRecorded(t *testing.T) {
	dir, rows := ownCatalogs(t), 0
	for line := range strings.Lines(clitest.ReadFile(t, "../../../testdata/olmv1/cluster/versions.tsv")) {
		version, said, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows++
		got := clitest.RunProgram(t, dir, "bindery", "resolve", "widget", "own", "--version", version)
		want := "error: an API server refuses the ClusterExtension: spec.source.catalog.version: " + said + "\n"
		if refused := strings.HasPrefix(got.Stderr, want); said == "accepted" && strings.Contains(got.Stderr, "API server") ||
			said != "accepted" && (!refused || got.Status != 1 || got.Stdout != "") {
			t.Errorf("%q: recorded %q, got %+v", version, said, got)
		}
	}
	if rows != 19 {
		t.Errorf("%d rows", rows)
	}
}

// The other fields of a ClusterExtension that the arguments fill: patterns, lengths, and how many channels there are.
func TestResolveFieldsRefused(t *testing.T) {
	dir := ownCatalogs(t)
	const channel = "spec.source.catalog.channels[%d]: Invalid value: %q: channels entries must be valid DNS1123 subdomains"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"widget", "own", "--channel", "Fast"}, []string{fmt.Sprintf(channel, 0, "Fast")}},
		{[]string{"widget", "own", "-c", "fast", "-c", "a_b", "-c", "x."},
			[]string{fmt.Sprintf(channel, 1, "a_b"), fmt.Sprintf(channel, 2, "x.")}},
		{[]string{"widget", "own", "-c", strings.Repeat("a", 254)},
			[]string{"spec.source.catalog.channels[0]: Too long: may not be more than 253 bytes"}},
		{append([]string{"widget", "own"}, strings.Fields(strings.Repeat("-c fast ", 257))...),
			[]string{"spec.source.catalog.channels: Too many: 257: must have at most 256 items"}},
		{[]string{"Widget", "own"}, []string{`spec.source.catalog.packageName: Invalid value: "Widget": packageName must be a ` +
			"valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), " +
			"start and end with an alphanumeric character, and be no longer than 253 characters"}},
		{[]string{strings.Repeat("a", 254), "own"},
			[]string{"spec.source.catalog.packageName: Too long: may not be more than 253 bytes"}},
		{[]string{"widget", "own", "--version", strings.Repeat("1", 65)},
			[]string{"spec.source.catalog.version: Too long: may not be more than 64 bytes"}},
		{[]string{"widget", "own", "--version", "1.*.*"}, []string{`"1.*.*": invalid version expression`}},
		{[]string{"widget", "own", "--version", "01", "-c", "Fast"},
			[]string{`"01": invalid version expression`, fmt.Sprintf(channel, 0, "Fast")}},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"resolve"}, c.args...)...)
		for _, want := range c.want {
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want+"\n") {
				t.Errorf("%.80q: %+v\nwant %s", c.args, got, want)
			}
		}
	}
	// A Subscription of OLM v0 has no such patterns.
	if got := clitest.RunProgram(t, dir, "bindery", "resolve", "widget", "own", "--v0", "--channel", "Fast"); strings.Contains(got.Stderr,
		"API server") {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"-c fast --version 1.x.x", strings.Repeat("-c fast ", 256)} {
		clitest.Done(t, dir, "bindery", append([]string{"resolve", "widget", "own"}, strings.Fields(args)...)...)
	}
}

// ClusterExtensions that resolve to nothing, and their conditions.
func TestResolveConditionsRecorded(t *testing.T) {
	dir := ownCatalogs(t)
	files, err := filepath.Glob("../../../testdata/olmv1/cluster/ce-q-*.json")
	if err != nil || len(files) != 6 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		var e recordedExtension
		clitest.ClusterFile(t, filepath.Base(file), &e)
		spec := e.Spec.Source.Catalog
		args := append([]string{"resolve", spec.PackageName}, spec.Selector.MatchExpressions[0].Values...)
		for _, channel := range spec.Channels {
			args = append(args, "--channel", channel)
		}
		if spec.Version != "" {
			args = append(args, "--version", spec.Version)
		}
		got := clitest.RunProgram(t, dir, "bindery", args...)
		if want := "error: " + e.message("Progressing") + "\n"; got.Status != 1 || !strings.HasPrefix(got.Stderr, want) {
			t.Errorf("%q: %+v\nwant %s", args, got, want)
		}
	}
}

// The messages of deprecations that the conditions of installed bundles repeat.
func TestResolveDeprecationsRecorded(t *testing.T) {
	dir := ownCatalogs(t)
	for _, name := range []string{"widget", "gadget"} {
		var e recordedExtension
		clitest.ClusterFile(t, "ce-deprecated-"+name+".json", &e)
		args := []string{"resolve", name, "own", "-o", "json", "--installed", e.Status.Install.Bundle.Name}
		for _, channel := range e.Spec.Source.Catalog.Channels {
			args = append(args, "--channel", channel)
		}
		var answer struct {
			Unchanged    bool
			Deprecations struct {
				Package           string
				Channels, Bundles []struct{ Message string }
			}
		}
		if err := json.Unmarshal([]byte(clitest.Done(t, dir, "bindery", args...)), &answer); err != nil {
			t.Fatal(err)
		}
		messages := func(of []struct{ Message string }) string {
			var all []string
			for _, m := range of {
				all = append(all, m.Message)
			}
			return strings.Join(all, "\n")
		}
		d := answer.Deprecations
		got := []string{d.Package, messages(d.Channels), messages(d.Bundles)}
		want := []string{e.message("PackageDeprecated"), e.message("ChannelDeprecated"), e.message("BundleDeprecated")}
		if !slices.Equal(got, want) || !answer.Unchanged {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// warnedCatalog has a package whose parts break a rule of OLM v1 each.
const warnedCatalog = `schema: olm.package
name: p
defaultChannel: stable
---
schema: olm.channel
package: p
name: stable
entries: [{name: p.v1}, {name: p.v2, replaces: p.v1}]
---
schema: olm.channel
package: p
name: Fast
entries: [{name: p.v2}]
---
schema: olm.bundle
package: p
name: p.v1
image: example.com/p:v1
properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]
---
schema: olm.bundle
package: p
name: p.v2
image: example.com/p:v2-old
properties: [{type: olm.package, value: {packageName: p, version: 2.0.0}}]
---
schema: olm.bundle
package: p
name: p.v2
image: example.com/p:v2
properties:
- {type: olm.package, value: {packageName: p, version: 2.0.0}}
- type: olm.csv.metadata
  value: {installModes: [{type: AllNamespaces, supported: false}, {type: OwnNamespace, supported: true}]}
---
schema: olm.bundle
package: p
name: p.v2-again
image: example.com/p:v2-again
properties: [{type: olm.package, value: {packageName: p, version: 2.0.0}}]
---
schema: olm.bundle
package: p
name: p.v0
image: example.com/p:v0
properties: [{type: olm.package, value: {packageName: p, version: 0.1.0}}]
---
name: nothing
package: p
`

// "resolve" warns of what "check --profile olmv1" finds in the package and in the bundles of the answer, of nothing that
// it finds in other bundles and packages, and says what it says.
func TestResolveWarns(t *testing.T) {
	dir := t.TempDir()
	other := strings.NewReplacer("name: p\n", "name: q\n", "package: p\n", "package: q\n").Replace(warnedCatalog)
	clitest.WriteFile(t, filepath.Join(dir, "catalog", "catalog.yaml"), warnedCatalog+"---\n"+other)
	type finding struct {
		Rule, Severity, Package, Channel, Bundle, File, Message, Fix string
		Line                                                         int
	}
	var report struct{ Findings []finding }
	got := clitest.RunProgram(t, dir, "bindery", "check", "catalog", "--profile", "olmv1", "-o", "json")
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		t.Fatal(err)
	}
	// What is installed or is to be installed; of two bundles of one version, p.v2-again is found first.
	for args, bundles := range map[string][]string{
		"":                                 {"p.v2-again"},
		"--version 1.0.0":                  {"p.v1"},
		"--version 1.0.0 --installed p.v0": nil,
		"--version <1":                     {"p.v0"},
		"--installed 1.0.0":                {"p.v1", "p.v2"},
	} {
		var want []finding
		for _, f := range report.Findings {
			if f.Package == "p" && (f.Bundle == "" || slices.Contains(bundles, f.Bundle) ||
				f.Rule == "olmv1.shadowed" && slices.Contains(bundles, "p.v2-again")) {
				want = append(want, f)
			}
		}
		var answer struct{ Warnings []finding }
		all := append([]string{"resolve", "p", "catalog", "-o", "json"}, strings.Fields(args)...)
		got := clitest.RunProgram(t, dir, "bindery", all...)
		if args == "--version 1.0.0 --installed p.v0" { // there is no way, and no answer
			if got.Status != 1 || !strings.Contains(got.Stderr, "bundle \"p.v0\" is in no channel") {
				t.Errorf("%+v", got)
			}
			continue
		}
		if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		for _, list := range [][]finding{want, answer.Warnings} {
			for i := range list { // check finds the line of the value in the blob
				list[i].Line = 0
			}
		}
		if !reflect.DeepEqual(answer.Warnings, want) || len(want) < 2 {
			t.Errorf("%s: got %+v\nwant %+v", args, answer.Warnings, want)
		}
		for _, f := range want {
			text := f.Message + " (" + f.Rule + ")"
			if f.Severity == "error" {
				text = "OLM v1 does not install it: " + text
			}
			if !strings.Contains(got.Stderr, "warning: catalog/catalog.yaml:") || !strings.Contains(got.Stderr, ": "+text+"\n") {
				t.Errorf("%s: no %s in\n%s", args, text, got.Stderr)
			}
		}
		if n := strings.Count(got.Stderr, "warning: "); n != len(want) {
			t.Errorf("%s: %d warnings of %d in\n%s", args, n, len(want), got.Stderr)
		}
	}
}
