package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// tektonObject has the used fields of Tekton's tasks and pipelines.
type tektonObject struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Params []struct {
			Name    string
			Default any
		}
		Workspaces []struct {
			Name     string
			Optional bool
		}
		Volumes []struct{ Name string }
		Steps   []struct {
			Image, Script   string
			OnError         string `yaml:"onError"`
			Command, Args   []string
			Env             []struct{ Name, Value string }
			SecurityContext map[string]any `yaml:"securityContext"`
			VolumeMounts    []struct {
				Name      string
				MountPath string `yaml:"mountPath"`
			} `yaml:"volumeMounts"`
		}
		Tasks []struct {
			Name       string
			RunAfter   []string              `yaml:"runAfter"`
			TaskRef    struct{ Name string } `yaml:"taskRef"`
			Matrix     struct{ Params []tektonParam }
			Params     []tektonParam
			Workspaces []struct{ Name string }
		}
	}
}

type tektonParam struct {
	Name  string
	Value any
}

// tektonObjects reads the tasks and pipelines of deploy/tekton, by their kinds and names, such as "Task
// bindery-migrate".
func tektonObjects(t *testing.T) map[string]tektonObject {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/tekton/*/*/*/*.yaml")
	if err != nil || len(files) < 13 {
		t.Fatal(files, err)
	}
	objects := map[string]tektonObject{}
	for _, file := range files {
		var o tektonObject
		if err := yaml.Unmarshal([]byte(clitest.ReadFile(t, file)), &o); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects[o.Kind+" "+o.Metadata.Name] = o
	}
	return objects
}

// restricted complains about a step that runs anything but the program, or not under restrictions.
func restricted(t *testing.T, o tektonObject) {
	t.Helper()
	for _, s := range o.Spec.Steps {
		c := s.SecurityContext
		if s.Script != "" || !slices.Equal(s.Command, []string{"/bin/bindery"}) || s.Image != "$(params.bindery)" ||
			c["runAsNonRoot"] != true || c["allowPrivilegeEscalation"] != false || c["readOnlyRootFilesystem"] != true {
			t.Errorf("%s: %+v", o.Metadata.Name, s)
		}
	}
}

// optional tells whether a task or a pipeline has a workspace that may be left out.
func (o tektonObject) optional(workspace string) bool {
	for _, w := range o.Spec.Workspaces {
		if w.Name == workspace {
			return w.Optional
		}
	}
	return false
}

// defaults gives values to the parameters of a task or a pipeline that have none.
func (o tektonObject) defaults(t *testing.T, values map[string]any) {
	t.Helper()
	for _, p := range o.Spec.Params {
		if _, ok := values["params."+p.Name]; ok {
			continue
		}
		switch v := p.Default.(type) {
		case []any:
			values["params."+p.Name] = texts(v)
		case string:
			values["params."+p.Name] = v
		default:
			t.Fatalf("%s: no value for %s", o.Metadata.Name, p.Name)
		}
	}
}

// substitute replaces references to parameters; a list parameter gives several values.
func substitute(t *testing.T, in []string, values map[string]any) (out []string) {
	t.Helper()
	for _, text := range in {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(text, "$(params."), "[*])"); ok {
			out = append(out, values["params."+name].([]string)...)
			continue
		}
		for name, value := range values {
			if s, ok := value.(string); ok {
				text = strings.ReplaceAll(text, "$("+name+")", s)
			}
		}
		if strings.Contains(text, "$(") {
			t.Fatalf("%q is not known", text)
		}
		out = append(out, text)
	}
	return out
}

// texts returns the values of a parameter in a pipeline.
func texts(v any) []string {
	switch v := v.(type) {
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, e.(string))
		}
		return out
	case string:
		return []string{v}
	}
	return nil
}

// The commands of the pipeline, run one by one, build the catalog of all packages; its steps need only the program and
// no privileges.
func TestTektonPipeline(t *testing.T) {
	objects := tektonObjects(t)
	dir, registry := t.TempDir(), testregistry.New(t)
	repository, image := registry.Host()+"/acme/packages", registry.Host()+"/acme/community:v1"
	packages := []string{"etcd", "prometheus"}
	config := "name: community\nreferences:\n"
	for _, name := range packages {
		clitest.WriteFile(t, filepath.Join(dir, "source", name, name, "catalog.json"), clitest.PackageText(name))
		clitest.WriteFile(t, filepath.Join(dir, "all", name, "catalog.json"), clitest.PackageText(name))
		config += "- name: " + name + "\n  image: " + repository + "/" + name + ":v1\n"
	}
	clitest.WriteFile(t, filepath.Join(dir, "source", "catalog.yaml"), config)
	given := map[string]any{
		"params.packages": packages, "params.repository": repository, "params.tag": "v1", "params.image": image,
		"params.platforms": "linux/amd64",
		"params.bindery":   "bindery", "params.flags": []string{"--use-http", "--server=none"},
	}
	objects["Pipeline bindery-catalog"].defaults(t, given)
	run := func(task string, values map[string]any) {
		t.Helper()
		o, ok := objects["Task "+task]
		if !ok {
			t.Fatalf("no task %q", task)
		}
		o.defaults(t, values)
		values["workspaces.source.path"] = filepath.Join(dir, "source")
		values["results.digest.path"] = filepath.Join(dir, task+".digest")
		restricted(t, o)
		for _, s := range o.Spec.Steps {
			clitest.Done(t, t.TempDir(), "bindery", substitute(t, s.Args, values)...)
		}
	}
	for _, task := range objects["Pipeline bindery-catalog"].Spec.Tasks {
		values := map[string]any{}
		for _, p := range task.Params {
			got := substitute(t, texts(p.Value), given)
			if values["params."+p.Name] = got; !strings.HasSuffix(texts(p.Value)[0], "[*])") {
				values["params."+p.Name] = got[0]
			}
		}
		for _, p := range task.Matrix.Params {
			for _, one := range substitute(t, texts(p.Value), given) {
				values["params."+p.Name] = one
				run(task.TaskRef.Name, values)
			}
		}
		if task.Matrix.Params == nil {
			run(task.TaskRef.Name, values)
		}
	}
	want := clitest.LastDigest(t, clitest.Done(t, dir, "bindery", "build", "catalog", "all", "-t", "x:v1", "--dry-run", "--server",
		"none", "--platform", "linux/amd64"))
	if got, err := os.ReadFile(filepath.Join(dir, "bindery-compose.digest")); err != nil || string(got) != want {
		t.Errorf("%s, %v instead of %s", got, err, want)
	}
	if got := registry.Manifest("acme/community", "v1"); len(got) == 0 {
		t.Error("nothing was pushed")
	}
}

// The task that builds a catalog refuses an invalid one before it pushes, and writes the digest of a valid one.
func TestTektonBuild(t *testing.T) {
	m := &machines{t: t, dir: t.TempDir(), flags: []string{"--use-http"}, hosts: strings.NewReplacer()}
	registry := testregistry.New(t)
	m.requireLogin(registry)
	clitest.WriteFile(t, filepath.Join(m.volume("source"), "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
	task := tektonObjects(t)["Task bindery-build-catalog"]
	workspaces := map[string]string{"source": m.volume("source"), "cache": m.volume("cache"),
		"credentials": m.volume("registry-credentials")}
	runs := m.steps(task, map[string]any{"params.image": registry.Host() + "/acme/catalog:v1",
		"params.flags": []string{"--server=none"}, "results.digest.path": "/workspace/cache/digest"},
		[]string{"source", "cache", "credentials"}, workspaces)
	if len(runs) != 2 || runs[0].args[0] != "validate" {
		t.Fatalf("%+v", runs)
	}
	runs[0].flagless = true
	for _, run := range runs {
		m.pods("build", []podRun{run})
	}
	if got := clitest.ReadFile(t, filepath.Join(m.volume("cache"), "digest")); !strings.HasPrefix(got, "sha256:") {
		t.Errorf("the digest is %q", got)
	}
	if len(registry.Manifest("acme/catalog", "v1")) == 0 {
		t.Error("nothing was pushed")
	}
	clitest.WriteFile(t, filepath.Join(m.volume("source"), "catalog", "etcd", "catalog.json"), `{"schema": "olm.package"}`)
	if _, err := m.pod(runs[0], false); err == nil {
		t.Error("an invalid catalog is valid")
	}
}

// The task of merge requests validates one catalog and compares it with another. A difference does not fail it.
func TestTektonReview(t *testing.T) {
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer()}
	clitest.WriteFile(t, filepath.Join(m.volume("target"), "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
	clitest.WriteFile(t, filepath.Join(m.volume("source"), "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
	task := tektonObjects(t)["Task bindery-review-catalog"]
	given := []string{"source", "target"}
	runs := m.steps(task, map[string]any{}, given, map[string]string{"source": m.volume("source"),
		"target": m.volume("target")})
	for _, run := range runs {
		m.pods("equal", []podRun{run})
	}
	clitest.WriteFile(t, filepath.Join(m.volume("source"), "catalog", "new", "catalog.json"), clitest.PackageText("new"))
	m.pods("validate", runs[:1])
	_, err := m.pod(runs[1], false)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the difference gives %v", err)
	}
	if task.Spec.Steps[0].OnError != "" || task.Spec.Steps[1].OnError != "continue" {
		t.Errorf("%+v", task.Spec.Steps)
	}
}
