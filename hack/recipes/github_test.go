package recipes

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// schemaErrors validates an action ("Action") or a workflow ("Workflow") with the schema of action-validator.
func schemaErrors(t *testing.T, kind, text string) []any {
	t.Helper()
	const script = `const v = require("@action-validator/core"), fs = require("fs");
console.log(JSON.stringify(v["validate" + process.argv[1]](fs.readFileSync(0, "utf8"))));`
	cmd := exec.Command("node", "-e", script, kind)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var state struct {
		ActionType string
		Errors     []any
	}
	if err := json.Unmarshal(out, &state); err != nil || !strings.EqualFold(state.ActionType, kind) {
		t.Fatalf("%s: %v", out, err)
	}
	return state.Errors
}

// lintErrors looks at a workflow with actionlint: syntax, expressions, contexts, permissions, inputs of known actions.
func lintErrors(t *testing.T, name, text string) (out []string) {
	t.Helper()
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.Lint(name, []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		out = append(out, e.Error())
	}
	return out
}

func TestGitHub(t *testing.T) {
	action := read(t, "action.yml")
	if found := schemaErrors(t, "Action", action); len(found) > 0 {
		t.Errorf("action.yml: %v", found)
	}
	if bad := strings.Replace(action, "using: composite", "using: magic", 1); len(schemaErrors(t, "Action", bad)) == 0 {
		t.Error("no fault is found in a wrong action")
	}
	for name, expression := range map[string]string{"deploy/ci/github.yaml": "steps.build.outputs",
		"deploy/ci/github-container.yaml": "steps.build.outputs", "deploy/ci/github-check.yaml": "github.base_ref"} {
		text := read(t, name)
		if found := schemaErrors(t, "Workflow", text); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
		if found := lintErrors(t, name, text); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
		if bad := strings.Replace(text, "runs-on:", "run-on:", 1); len(schemaErrors(t, "Workflow", bad)) == 0 {
			t.Error("no fault is found in a wrong workflow")
		}
		if bad := strings.Replace(text, expression, "step.build.outputs", 1); len(lintErrors(t, name, bad)) == 0 {
			t.Error("no fault is found in a wrong expression")
		}
	}
}

// The workflows are valid as their comments say to sign without a key: the permission and the input are in the right
// places.
func TestGitHubKeyless(t *testing.T) {
	for name, edits := range map[string][]string{
		"deploy/ci/github.yaml": {"# permissions: {", "permissions: {", "# sign: keyless", "sign: keyless",
			"          sign-key: ${{ secrets.SIGN_KEY }}\n", "",
			"          sign-passphrase: ${{ secrets.SIGN_PASSPHRASE }}\n", ""},
		"deploy/ci/github-container.yaml": {"# permissions: {", "permissions: {", `SIGN: "" # or keyless`, "SIGN: keyless"},
	} {
		text := read(t, name)
		for i := 0; i < len(edits); i += 2 {
			if !strings.Contains(text, edits[i]) {
				t.Errorf("%s: %q is not there", name, edits[i])
			}
		}
		text = strings.NewReplacer(edits...).Replace(text)
		if found := schemaErrors(t, "Workflow", text); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
		if found := lintErrors(t, name, text); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
		if bad := strings.Replace(text, "id-token: write", "id-tokens: write", 1); len(lintErrors(t, name, bad)) == 0 {
			t.Error("no fault is found in a wrong permission")
		}
	}
}

// install runs the action's script as a runner does, with releases in a directory, and returns its output.
func install(t *testing.T, env map[string]string) (outputs string, log string, err error) {
	t.Helper()
	temp := t.TempDir()
	for _, name := range []string{"output", "path"} {
		if err := os.WriteFile(filepath.Join(temp, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", root+"deploy/github/install.sh")
	cmd.Env = append(os.Environ(), "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+temp,
		"GITHUB_OUTPUT="+filepath.Join(temp, "output"), "GITHUB_PATH="+filepath.Join(temp, "path"))
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	for _, name := range []string{"output", "path"} {
		text, err := os.ReadFile(filepath.Join(temp, name))
		if err != nil {
			t.Fatal(err)
		}
		outputs += string(text)
	}
	return strings.ReplaceAll(outputs, temp, "TEMP"), out.String(), err
}

// The action installs an archive whose checksum is given, and none with another checksum, a placeholder or none.
func TestInstall(t *testing.T) {
	releases := t.TempDir()
	dir := filepath.Join(releases, "v1.2.3")
	program := filepath.Join(t.TempDir(), "bindery")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ran $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "bindery_1.2.3_linux_amd64.tar.gz")
	if out, err := exec.Command("tar", "-czf", archive, "-C", filepath.Dir(program),
		"bindery").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	env := map[string]string{"BINDERY_ACTION_VERSION": "v1.2.3", "BINDERY_ACTION_CHECKSUM": sum,
		"BINDERY_ACTION_RELEASES": "file://" + releases, "XDG_CACHE_HOME": "/cache"}
	const want = "version=v1.2.3\npath=TEMP/bindery-v1.2.3\ncache=/cache/bindery\nTEMP/bindery-v1.2.3\n"
	if got, log, err := install(t, env); err != nil || got != want || log != "ran version\n" {
		t.Errorf("%v, %q, %s", err, got, log)
	}
	for what, edit := range map[string][3]string{
		"another checksum": {"BINDERY_ACTION_CHECKSUM", strings.Repeat("1", 64), "and not 1111"},
		"a placeholder":    {"BINDERY_ACTION_CHECKSUM", strings.Repeat("0", 64), "placeholder"},
		"a word":           {"BINDERY_ACTION_CHECKSUM", "none", "hexadecimal"},
		"no checksum":      {"BINDERY_ACTION_CHECKSUM", "", "give the input checksum"},
		"no version":       {"BINDERY_ACTION_VERSION", "main", "not a release"},
		"a path":           {"BINDERY_ACTION_VERSION", "v1.2.3/../x", "not a release"},
		"another machine":  {"RUNNER_ARCH", "ARM", "no release"},
		"no archive":       {"BINDERY_ACTION_VERSION", "v1.2.4", "curl"},
		"plain HTTP":       {"BINDERY_ACTION_RELEASES", "http://127.0.0.1:1", "curl"},
	} {
		changed := maps.Clone(env)
		changed[edit[0]] = edit[1]
		if got, log, err := install(t, changed); err == nil || got != "" || !strings.Contains(log, edit[2]) {
			t.Errorf("%s: %v, %q, %s", what, err, got, log)
		}
	}
}
