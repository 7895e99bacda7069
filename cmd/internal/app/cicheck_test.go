package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// preCommitHook is what pre-commit reads of a hook.
type preCommitHook struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	Entry         string   `json:"entry"`
	Args          []string `json:"args"`
	Language      string   `json:"language"`
	Files         string   `json:"files"`
	PassFilenames *bool    `json:"pass_filenames"`
	RequireSerial bool     `json:"require_serial"`
}

// checkJobs are the recipes that check a pull request: the workflow, and the hook as pre-commit starts it: the words of
// entry, then args.
func checkJobs(t *testing.T) map[string]ciJob {
	t.Helper()
	var hooks []preCommitHook
	if err := yaml.UnmarshalStrict([]byte(clitest.ReadFile(t, "../../../.pre-commit-hooks.yaml")), &hooks); err != nil {
		t.Fatal(err)
	}
	if len(hooks) != 1 || hooks[0].ID == "" || hooks[0].Name == "" || hooks[0].Language != "system" ||
		hooks[0].PassFilenames == nil || *hooks[0].PassFilenames {
		t.Fatalf("%+v", hooks)
	}
	files := regexp.MustCompile(hooks[0].Files)
	for name, want := range map[string]bool{"operators/demo/ci.yaml": true, "catalogs/v4.18/demo/catalog.yaml": true,
		"docs/operators/x": false, "README.md": false} {
		if files.MatchString(name) != want {
			t.Errorf("the hook runs for %s: %t", name, !want)
		}
	}
	return map[string]ciJob{
		"pre-commit": {shell: "sh", script: strings.Join(append(strings.Fields(hooks[0].Entry), hooks[0].Args...), " ")},
		"github": {shell: "bash", script: githubJobs(t, "github-check.yaml")["check"],
			env: map[string]string{"CHECK_SINCE": "origin/main"}},
	}
}

// The workflow and the hook take a request that the pipeline takes, and refuse one that it refuses.
func TestCIChecks(t *testing.T) {
	for name, job := range checkJobs(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			upstream, fork := filepath.Join(dir, "upstream"), filepath.Join(dir, "fork")
			if err := os.CopyFS(upstream, os.DirFS("../../../testdata/pipelines/repository")); err != nil {
				t.Fatal(err)
			}
			demo := filepath.Join(upstream, "operators", "demo")
			if err := os.Rename(filepath.Join(demo, "1.1.0"), filepath.Join(dir, "1.1.0")); err != nil {
				t.Fatal(err)
			}
			git(t, upstream, "init", "-q")
			git(t, upstream, "add", ".")
			git(t, upstream, "commit", "-qm", "state")
			git(t, dir, "clone", "-q", upstream, fork)
			demo = filepath.Join(fork, "operators", "demo")
			if err := os.Rename(filepath.Join(dir, "1.1.0"), filepath.Join(demo, "1.1.0")); err != nil {
				t.Fatal(err)
			}
			git(t, fork, "add", ".")
			if out, err := job.run(t, fork); err != nil || !strings.Contains(out, "title of the pull request: operator demo (1.1.0)") {
				t.Errorf("%v\n%s", err, out)
			}
			clitest.WriteFile(t, filepath.Join(demo, "1.0.0", "metadata", "properties.yaml"), "---\nproperties: []\n")
			git(t, fork, "add", ".")
			out, err := job.run(t, fork)
			want := "check_modified_bundles"
			if name == "github" {
				want = "::error title=check_modified_bundles,file=operators/demo/1.0.0::"
			}
			if err == nil || !strings.Contains(out, want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The action refuses inputs of a check that would not be made, and takes flags.
func TestActionChecks(t *testing.T) {
	const workflow = "jobs: {check: {steps: [{uses: operator-bindery/bindery@0, with: {INPUTS}}]}}"
	for inputs, want := range map[string]string{
		`check-since: main`:            "::error::the input check-since or check-flags is given, and check is not",
		`check-flags: "--profile opm"`: "::error::the input check-since or check-flags is given, and check is not",
		`check: bundle, check-flags: "--profile certified --fail-on warning"`: "::error title=ocp_version_info,file=bundle/metadata/annotations.yaml",
		`check: bundle, check-flags: "--profile nonsense"`:                    "nonsense",
	} {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
			t.Fatal(err)
		}
		job := ciJob{shell: "bash", script: workflowJobs(t, strings.Replace(workflow, "INPUTS", inputs, 1))["check"]}
		if out, err := job.run(t, dir); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", inputs, err, out)
		}
	}
	job := ciJob{shell: "bash", script: workflowJobs(t, strings.Replace(workflow, "INPUTS", "version: v1", 1))["check"]}
	if out, err := job.run(t, t.TempDir()); err != nil || out != "" {
		t.Errorf("without an input: %v\n%s", err, out)
	}
}
