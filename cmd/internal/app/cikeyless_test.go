package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// recorder stands for the program: it writes down each of its command lines with the variables that say how it signs,
// and the digest that steps read.
const recorder = `#!/bin/sh
echo "$* keyless=${BINDERY_SIGN_KEYLESS-} key=${BINDERY_SIGN_KEY-}" >> "$RECORD"
case "$*" in *"--digest-file digest"*) echo sha256:0 > digest;; esac
`

// record runs a job with the recorder in place of the program, and returns the last of its command lines.
func record(t *testing.T, job ciJob, edits ...string) (line, out string, err error) {
	t.Helper()
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "bin", "bindery"), recorder)
	if err := os.Chmod(filepath.Join(dir, "bin", "bindery"), 0o755); err != nil {
		t.Fatal(err)
	}
	if job.env == nil {
		job.env = map[string]string{}
	}
	job.env["PATH"] = filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")
	job.env["RECORD"] = filepath.Join(dir, "record")
	out, err = job.run(t, dir, edits...)
	text, _ := os.ReadFile(job.env["RECORD"])
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], out, err
}

// keyless tells whether a recorded command signs without a key.
func keyless(line string) bool {
	return strings.HasSuffix(line, " keyless=true key=") && !strings.Contains(line, "--sign-key=") &&
		!strings.Contains(line, "--sign-key ")
}

// keylessWorkflow is a workflow of GitHub after the edits that its comments ask for, with a value of "sign".
func keylessWorkflow(t *testing.T, name, sign string) string {
	t.Helper()
	text := clitest.ReadFile(t, ciDir+name)
	for _, edit := range [][2]string{{"# permissions: {", "permissions: {"}, {"# sign: keyless", "sign: " + sign},
		{`SIGN: "" # or keyless`, "SIGN: " + sign}, {"sign-key: ${{ secrets.SIGN_KEY }}", ""},
		{"sign-passphrase: ${{ secrets.SIGN_PASSPHRASE }}", ""}} {
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	var workflow struct {
		Jobs map[string]struct{ Permissions map[string]string }
	}
	if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
		t.Fatal(err)
	}
	for name, job := range workflow.Jobs {
		if signs := name != "review"; (job.Permissions["id-token"] == "write") != signs ||
			signs && job.Permissions["contents"] != "read" {
			t.Errorf("the permissions of %s are %v", name, job.Permissions)
		}
	}
	return text
}

// With "sign: keyless" the jobs of GitHub sign without a key. Another value, a key beside it, and a job that may not
// request a token are refused.
func TestGitHubSignsKeyless(t *testing.T) {
	for _, name := range []string{"github.yaml", "github-container.yaml"} {
		run := func(text string, env map[string]string) (line, out string, err error) {
			jobs, dir := workflowJobs(t, text), t.TempDir()
			job := ciJob{shell: "bash", script: jobs["build"] + jobs["catalog"], env: map[string]string{"RUNNER_TEMP": dir,
				"GITHUB_OUTPUT": filepath.Join(dir, "output"), "GITHUB_ENV": filepath.Join(dir, "env"), "GITHUB_SHA": "sha",
				"ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example.com"}}
			for name, value := range env {
				job.env[name] = value
			}
			return record(t, job)
		}
		text := keylessWorkflow(t, name, "keyless")
		if line, out, err := run(text, nil); err != nil || !keyless(line) || !strings.HasPrefix(line, "build catalog ") {
			t.Errorf("%s: %v, %q\n%s", name, err, line, out)
		}
		if line, out, err := run(clitest.ReadFile(t, ciDir+name), nil); err != nil || keyless(line) {
			t.Errorf("%s as it is: %v, %q\n%s", name, err, line, out)
		}
		line, out, err := run(keylessWorkflow(t, name, "keyles"), nil)
		if err == nil || line != "" && strings.HasPrefix(line, "build") || !strings.Contains(out, "is neither empty nor keyless") {
			t.Errorf("%s: another value: %v, %q\n%s", name, err, line, out)
		}
		withKey := strings.Replace(text, "sign: keyless\n", "sign: keyless\n          sign-key: ${{ secrets.SIGN_KEY }}\n", 1)
		line, out, err = run(withKey, map[string]string{"SIGN_KEY": "a key"})
		if err == nil || strings.HasPrefix(line, "build") || !strings.Contains(out, "::error::") {
			t.Errorf("%s: with a key: %v, %q\n%s", name, err, line, out)
		}
	}
	jobs, dir := workflowJobs(t, keylessWorkflow(t, "github.yaml", "keyless")), t.TempDir()
	_, out, err := record(t, ciJob{shell: "bash", script: jobs["build"], env: map[string]string{"RUNNER_TEMP": dir,
		"GITHUB_ENV": filepath.Join(dir, "env")}})
	if err == nil || !strings.Contains(out, "no permission id-token: write") {
		t.Errorf("without the permission: %v\n%s", err, out)
	}
}

// The jobs of the components that push sign without a key if "sign" is "keyless"; GitLab refuses another value.
func TestGitLabSignsKeyless(t *testing.T) {
	for name, c := range map[string]struct {
		job   string
		given map[string]string
	}{
		"build":   {"bindery-build", map[string]string{"image": "registry.example.com/acme/catalog:v1"}},
		"migrate": {"bindery-migrate", map[string]string{}},
		"mirror":  {"bindery-mirror-publish", map[string]string{"destination": "docker://mirror.example.com/olm"}},
	} {
		for _, sign := range []string{"", "keyless"} {
			c.given["sign"] = sign
			job := component(t, name, c.given)[c.job].shellJob(map[string]string{"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "1"})
			if line, out, err := record(t, job); err != nil || line == "" || keyless(line) != (sign == "keyless") {
				t.Errorf("%s, sign %q: %v, %q\n%s", name, sign, err, line, out)
			}
		}
	}
	if text := clitest.ReadFile(t, ciDir+"gitlab-ci.yml"); !strings.Contains(text,
		"\n# bindery-build: {id_tokens: {SIGSTORE_ID_TOKEN: {aud: sigstore}}}\n") {
		t.Error("gitlab-ci.yml does not say which token the job needs")
	}
}

// isIdentity tells whether a volume is a token of a service account that Sigstore takes.
func isIdentity(v *corev1.ProjectedVolumeSource) bool {
	if v == nil || len(v.Sources) != 1 || v.Sources[0].ServiceAccountToken == nil {
		return false
	}
	token := v.Sources[0].ServiceAccountToken
	return token.Audience == "sigstore" && token.Path == "oidc-token"
}

// The pod signs without a key when its lines about that are no comments any more: it has a token where the program looks.
func TestPodSignsKeyless(t *testing.T) {
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(clitest.ReadFile(t, ciDir+"pod.yaml"), "# keyless: - {",
		"- {")), &job); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	c := spec.Containers[0]
	if !slices.Contains(c.Env, corev1.EnvVar{Name: "BINDERY_SIGN_KEYLESS", Value: "true"}) ||
		slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "BINDERY_SIGN_KEY" }) {
		t.Errorf("the environment is %v", c.Env)
	}
	if !slices.Contains(c.VolumeMounts, corev1.VolumeMount{Name: "identity", MountPath: "/var/run/sigstore/cosign",
		ReadOnly: true}) {
		t.Errorf("the mounts are %v", c.VolumeMounts)
	}
	if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "identity" && isIdentity(v.Projected) }) {
		t.Errorf("the volumes are %v", spec.Volumes)
	}
}

// The steps of Tekton's tasks that sign get the flags of the example without a key, as they get those of the one with a
// key, and the file with the token is in the workspace.
func TestTektonSignsKeyless(t *testing.T) {
	_, flags := tektonSignFlags(t)
	if want := []string{"--sign-keyless", "--identity-token=/workspace/signing/oidc-token"}; !slices.Equal(flags, want) {
		t.Fatalf("the flags are %q", flags)
	}
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer()}
	workspaces, signing := map[string]string{}, 0
	for name, o := range tektonObjects(t) {
		if o.Kind != "Task" || !slices.ContainsFunc(o.Spec.Workspaces, func(w struct {
			Name     string
			Optional bool
		}) bool {
			return w.Name == "signing"
		}) {
			continue
		}
		signing++
		given, values := []string{"signing"}, map[string]any{"params.sign-flags": flags}
		for _, w := range o.Spec.Workspaces {
			if !w.Optional {
				given = append(given, w.Name)
			}
		}
		for _, p := range o.Spec.Params {
			if p.Default == nil {
				values["params."+p.Name] = "some"
			}
		}
		workspaces["signing"] = m.volume("token")
		runs := m.steps(o, values, given, workspaces)
		last := runs[len(runs)-1]
		if got := last.args[len(last.args)-len(flags):]; !slices.Equal(got, flags) ||
			slices.ContainsFunc(last.args, func(a string) bool { return strings.HasPrefix(a, "--sign-key=") }) ||
			last.mounts["/workspace/signing"] != workspaces["signing"] {
			t.Errorf("%s: %q, %v", name, last.args, last.mounts)
		}
	}
	if signing != 5 {
		t.Errorf("%d tasks sign", signing)
	}
}
