package app_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// ciJob is what a CI system runs of a recipe: lines for a shell that ends at the first one that fails.
type ciJob struct {
	shell, script string
	env           map[string]string
}

// gitlabJob is a job of a component.
type gitlabJob struct {
	Stage, Image string
	Rules        []struct{ If string }
	Variables    map[string]string
	Script       []string
	Parallel     any
	Retry        int
	Needs        []struct {
		Job       string
		Artifacts bool
	}
	Cache struct {
		Key, When string
		Paths     []string
	}
	Artifacts struct {
		ExposeAs string `json:"expose_as"`
		When     string
		Paths    []string
	}
}

// gitlabInput is an input of a component.
type gitlabInput struct {
	Description, Type, Regex string
	Default                  any
	Options                  []string
}

// component returns the jobs of a component of GitLab, with inputs in their places.
func component(t *testing.T, name string, given map[string]string) map[string]gitlabJob {
	t.Helper()
	head, body, ok := strings.Cut(clitest.ReadFile(t, "../../../templates/"+name+".yml"), "\n---\n")
	if !ok {
		t.Fatalf("%s has no head", name)
	}
	var spec struct {
		Spec struct{ Inputs map[string]gitlabInput }
	}
	if err := yaml.UnmarshalStrict([]byte(head), &spec); err != nil {
		t.Fatal(err)
	}
	for input := range given {
		if _, ok := spec.Spec.Inputs[input]; !ok {
			t.Errorf("%s has no input %s", name, input)
		}
	}
	for input, of := range spec.Spec.Inputs {
		value, ok := given[input]
		if !ok && of.Default == nil {
			t.Fatalf("%s: the input %s is not given", name, input)
		} else if !ok {
			value = fmt.Sprint(of.Default)
		}
		if of.Description == "" || !regexp.MustCompile(of.Regex).MatchString(value) ||
			of.Options != nil && !slices.Contains(of.Options, value) {
			t.Errorf("%s: %s is %q, described as %q", name, input, value, of.Description)
		}
		was := body
		if body = strings.ReplaceAll(body, "$[[ inputs."+input+" ]]", value); body == was {
			t.Errorf("%s does not use its input %s", name, input)
		}
	}
	if strings.Contains(body, "$[[") {
		t.Errorf("%s uses an input that it does not have", name)
	}
	jobs := map[string]gitlabJob{}
	if err := yaml.UnmarshalStrict([]byte(body), &jobs); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return jobs
}

// shellJob is a job of GitLab as a script.
func (j gitlabJob) shellJob(env map[string]string) ciJob {
	return ciJob{shell: "sh", script: strings.Join(j.Script, "\n"), env: env}
}

// included returns the jobs of the components that gitlab-ci.yml includes.
func included(t *testing.T) map[string]gitlabJob {
	t.Helper()
	var file struct {
		Include []struct {
			Component string
			Inputs    map[string]string
		}
	}
	strictly(t, "gitlab-ci.yml", &file)
	out := map[string]gitlabJob{}
	for _, c := range file.Include {
		name, ok := strings.CutPrefix(c.Component, "$CI_SERVER_FQDN/operator-bindery/bindery/")
		name, version, pinned := strings.Cut(name, "@")
		if !ok || !pinned || !strings.HasPrefix(version, "v") {
			t.Fatalf("%q is no component of a version", c.Component)
		}
		for job, of := range component(t, name, c.Inputs) {
			out[job] = of
		}
	}
	return out
}

// githubStep is a step of a workflow or of the action.
type githubStep struct {
	ID, Run, Shell, Uses string
	Env, With            map[string]string
}

var (
	githubSecret = regexp.MustCompile(`^\$\{\{ secrets\.(\w+) \}\}$`)
	githubInput  = regexp.MustCompile(`^\$\{\{ inputs\.([\w-]+) \}\}$`)
)

// script is the step for bash. A step has a shell of its own, with secrets, which are variables of the test and empty if
// there is none, and texts, under the names of env. What it writes to GITHUB_ENV is the environment of the steps behind
// it.
func (s githubStep) script() string {
	text := "(\n"
	for name, value := range s.Env {
		if m := githubSecret.FindStringSubmatch(value); m != nil {
			text += "export " + name + "=\"${" + m[1] + "-}\"\n"
		} else if !strings.Contains(value, "${{") {
			text += "export " + name + "='" + value + "'\n"
		}
	}
	return text + s.Run + "\n)\n[ ! -s \"${GITHUB_ENV-}\" ] || { set -a; . \"$GITHUB_ENV\"; set +a; }\n"
}

// githubJobs returns the jobs of a workflow; each run of a step is a script of bash. Of this project's action it is the
// steps that install nothing, with the inputs that the workflow gives.
func githubJobs(t *testing.T, file string) map[string]string {
	t.Helper()
	return workflowJobs(t, clitest.ReadFile(t, ciDir+file))
}

// workflowJobs does the same for the text of a workflow.
func workflowJobs(t *testing.T, text string) map[string]string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct{ Steps []githubStep }
	}
	if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
		t.Fatal(err)
	}
	var action struct{ Runs struct{ Steps []githubStep } }
	if err := yaml.Unmarshal([]byte(clitest.ReadFile(t, "../../../action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, j := range workflow.Jobs {
		for _, s := range j.Steps {
			if s.Run != "" {
				out[name] += s.script()
			}
			for _, a := range action.Runs.Steps {
				if !strings.HasPrefix(s.Uses, "operator-bindery/bindery@") || a.Run == "" || a.ID == "install" {
					continue
				}
				a.Env = maps.Clone(a.Env)
				for name, value := range a.Env {
					if m := githubInput.FindStringSubmatch(value); m != nil {
						a.Env[name] = cmp.Or(s.With[m[1]], "${{ secrets.NONE }}")
					}
				}
				out[name] += a.script()
			}
		}
	}
	return out
}

var (
	jenkinsStage = regexp.MustCompile(`(?s)stage\('(\w+)'\).*?\n    \}\n`)
	jenkinsStep  = regexp.MustCompile(`(?m)^\s*sh '(.*)'$`)
)

// jenkinsStages returns the scripts of the stages of the Jenkinsfile.
func jenkinsStages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, stage := range jenkinsStage.FindAllStringSubmatch(clitest.ReadFile(t, ciDir+"Jenkinsfile"), -1) {
		for _, m := range jenkinsStep.FindAllStringSubmatch(stage[0], -1) {
			out[stage[1]] += m[1] + "\n"
		}
	}
	return out
}

// podJob is the job of Kubernetes, whose containers need no shell.
func podJob(t *testing.T, dir string) ciJob {
	t.Helper()
	at := strings.NewReplacer("/source/", dir+"/", "/work/", dir+"/")
	spec, script := ciPods(t)["pod.yaml"], ""
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if len(c.Command) != 1 || c.Command[0] != "/bin/bindery" {
			t.Errorf("the pod runs %v", c.Command)
		}
		script += "bindery " + at.Replace(strings.Join(c.Args, " ")) + "\n"
	}
	return ciJob{shell: "sh", script: script, env: map[string]string{
		"REGISTRY_AUTH_FILE": filepath.Join(dir, "auth.json")}}
}

// Run runs a job in a checkout, with edits of its script, and returns its output.
func (j ciJob) run(t *testing.T, dir string, edits ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(j.shell, "-euc", strings.NewReplacer(edits...).Replace(j.script))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + clitest.BinDir + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"BINDERY_USE_HTTP=true", "BINDERY_NO_CACHE=true"}
	for name, value := range j.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
