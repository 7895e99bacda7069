package check_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// checkDir has a catalog, a bundle that OLM v1 installs in one namespace only, and a rendered form of it.
func checkDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "index.db"))
	clitest.Done(t, dir, "bindery", "migrate", "index.db", "catalog")
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// All reports name a file from where the program was started, and the file of waivers as the user did.
func TestPlacesInReports(t *testing.T) {
	dir := checkDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "waivers.yaml"),
		"waivers:\n- {rule: olmv1.install-mode, reason: none, until: 2000-01-01}\n")
	for _, ref := range []string{"catalog", "./catalog/", filepath.Join(dir, "catalog")} {
		run := func(format ...string) string {
			t.Helper()
			args := append([]string{"check", ref, "--profile", "olmv1", "--waivers", "waivers.yaml"}, format...)
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if got.Status != 1 || got.Stderr != "" {
				t.Fatalf("%s: %+v", ref, got)
			}
			return got.Stdout
		}
		const place, waiver = "catalog/etcd/catalog.json:174: ", "waivers.yaml:2: "
		for _, format := range [][]string{nil, {"-o", "junit"}} {
			text := run(format...)
			if !strings.Contains(text, place) || strings.Contains(text, "/"+place) || !strings.Contains(text, waiver) ||
				strings.Contains(text, "/"+waiver) {
				t.Errorf("%s %v:\n%s", ref, format, text)
			}
		}
		var suites struct {
			Failures int `xml:"failures,attr"`
		}
		if err := xml.Unmarshal([]byte(run("-o", "junit")), &suites); err != nil || suites.Failures != 3 {
			t.Errorf("%d failures, %v", suites.Failures, err)
		}
		type result struct {
			RuleID    string
			Locations []struct {
				PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
			}
		}
		var log struct {
			Runs []struct {
				Tool struct {
					Driver struct{ Rules []struct{ ID string } }
				}
				Results []result
			}
		}
		if err := json.Unmarshal([]byte(run("-o", "sarif")), &log); err != nil {
			t.Fatal(err)
		}
		rules := map[string]bool{}
		for _, r := range log.Runs[0].Tool.Driver.Rules {
			rules[r.ID] = true
		}
		for _, r := range log.Runs[0].Results {
			uri, want := r.Locations[0].PhysicalLocation.ArtifactLocation.URI, "catalog/"
			if strings.HasPrefix(r.RuleID, "waiver.") {
				want = "waivers.yaml"
			}
			if !strings.HasPrefix(uri, want) || !rules[r.RuleID] {
				t.Errorf("%s: %s at %q", ref, r.RuleID, uri)
			}
		}
	}
}

// The files for Konflux are written beside a report that has findings, whole or not at all.
func TestCheckArtifacts(t *testing.T) {
	dir := checkDir(t)
	got := clitest.RunProgram(t, dir, "bindery", "check", "catalog", "--profile", "konflux", "--artifacts", "out")
	if got.Status != 1 || !strings.Contains(got.Stdout, "fbc:bundle-pinned") {
		t.Errorf("%+v", got)
	}
	var images []string
	if err := json.Unmarshal([]byte(clitest.ReadFile(t, filepath.Join(dir, "out", "related-images.json"))),
		&images); err != nil ||
		len(images) < 5 {
		t.Errorf("%q, %v", images, err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "catalog", "broken.json"), "{")
	got = clitest.RunProgram(t, dir, "bindery", "check", "catalog", "--profile", "konflux", "--artifacts", "none")
	if got.Status != 1 || !strings.Contains(got.Stdout, "fbc:") || !strings.Contains(got.Stderr, "--artifacts: ") {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "none")); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAdviceAboutOLMv1(t *testing.T) {
	dir := checkDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "config.yaml"), "watchNamespace: other\n")
	clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "--bundle-format", "plain", "--watch-namespace", "a", "-t",
		"a/plain:v1")
	if err := os.Mkdir(filepath.Join(dir, "unpulled"), 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "unpulled", "catalog.yaml"),
		"schema: olm.package\nname: a\ndefaultChannel: s\n---\n"+
			"{schema: olm.channel, package: a, name: s, entries: [{name: a.v1}]}\n---\n"+
			"{schema: olm.bundle, package: a, name: a.v1, image: '127.0.0.1:1/a/a:v1', "+
			"properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]}\n")
	for line, want := range map[string]string{
		"resolve etcd catalog --channel nope":                    "hint: the package has the channels alpha, clusterwide-alpha, ",
		"resolve etcd catalog --channel nope --installed 0.9.0":  "hint: the package has the channels alpha, ",
		"resolve etcd catalog --version >2":                      "hint: without --version there is a candidate",
		"resolve etcd catalog --installed 0.9.4 --channel alpha": "hint: no entry replaces or skips",
		"resolve bundle etcd":                                    `"bundle" is a bundle, not a catalog`,
		"bundle manifests bundle --config config.yaml": "hint: a configuration with watchNamespace needs " +
			"--gate Single",
		"check unpulled --profile olmv1 --pull --retries 0 --fail-on warning": "fix: make the image of the bundle " +
			"available",
		"bundle manifests catalog":                                "hint: a bundle has the directories manifests and metadata",
		"bundle manifests oci:plain.oci:v1":                       "hint: only bundles of the format registry+v1",
		"diff --manifests catalog bundle --watch-namespace other": "hint: with --manifests the arguments are bundles",
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(line)...)
		if got.Status != 1 || !strings.Contains(got.Stdout+got.Stderr, want) || len(got.Stderr) > 2000 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if out := clitest.Done(t, dir, "bindery", "resolve", "etcd", "catalog", "--v0"); !strings.Contains(out,
		"no way to the head:  none") {
		t.Error(out)
	}
}

// What options added to rendered manifests is no difference to a bundle, and both versions are for one namespace.
func TestDiffManifestsOfRendered(t *testing.T) {
	dir := checkDir(t)
	clitest.Done(t, dir, "bindery", "bundle", "manifests", "bundle", "--watch-namespace", "x", "--create-namespace",
		"--olm-labels", "acme", "--split", "--phases", "--to", "deploy")
	for _, sides := range [][]string{{"deploy", "bundle"}, {"bundle", "deploy"}, {"bundle", "bundle"}} {
		got := clitest.RunProgram(t, dir, "bindery",
			append([]string{"diff", "--manifests", "--watch-namespace", "x"}, sides...)...)
		if got.Status != 0 || strings.Contains(got.Stderr, "as --install-namespace says") {
			t.Errorf("%v: %+v", sides, got)
		}
	}
}
