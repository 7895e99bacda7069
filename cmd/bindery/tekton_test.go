package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/testregistry"
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

// tektonObjects reads the tasks and pipelines of a file, by their names.
func tektonObjects(t *testing.T, file string) map[string]tektonObject {
	t.Helper()
	objects := map[string]tektonObject{}
	dec := yaml.NewDecoder(bytes.NewReader([]byte(readFile(t, file))))
	for {
		var o tektonObject
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects[o.Metadata.Name] = o
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
	objects := tektonObjects(t, "../../deploy/tekton/catalog.yaml")
	dir, registry := t.TempDir(), testregistry.New(t)
	repository, image := registry.Host()+"/acme/packages", registry.Host()+"/acme/community:v1"
	packages := []string{"etcd", "prometheus"}
	config := "name: community\nreferences:\n"
	for _, name := range packages {
		writeFile(t, filepath.Join(dir, "source", name, name, "catalog.json"), packageText(name))
		writeFile(t, filepath.Join(dir, "all", name, "catalog.json"), packageText(name))
		config += "- name: " + name + "\n  image: " + repository + "/" + name + ":v1\n"
	}
	writeFile(t, filepath.Join(dir, "source", "catalog.yaml"), config)
	given := map[string]any{
		"params.packages": packages, "params.repository": repository, "params.tag": "v1", "params.image": image,
		"params.platforms": "linux/amd64",
		"params.bindery":   "bindery", "params.flags": []string{"--use-http", "--server=none"},
	}
	run := func(task string, values map[string]any) {
		t.Helper()
		o, ok := objects[task]
		if !ok || o.Kind != "Task" {
			t.Fatalf("no task %q", task)
		}
		for _, p := range o.Spec.Params {
			if values["params."+p.Name] != nil {
				continue
			}
			if list, ok := p.Default.([]any); ok {
				values["params."+p.Name] = texts(list)
			} else if text, ok := p.Default.(string); ok {
				values["params."+p.Name] = text
			} else {
				t.Fatalf("%s: no value for %s", task, p.Name)
			}
		}
		values["workspaces.source.path"], values["results.digest.path"] = filepath.Join(dir,
			"source"), filepath.Join(dir, task+".digest")
		for _, s := range o.Spec.Steps {
			if s.Script != "" || !slices.Equal(s.Command, []string{"/bin/bindery"}) || s.Image != "$(params.bindery)" {
				t.Errorf("%s: a step runs something else: %+v", task, s)
			}
			c := s.SecurityContext
			if c["runAsNonRoot"] != true || c["allowPrivilegeEscalation"] != false ||
				c["readOnlyRootFilesystem"] != true {
				t.Errorf("%s: %+v", task, c)
			}
			done(t, t.TempDir(), "bindery", substitute(t, s.Args, values)...)
		}
	}
	for _, task := range objects["bindery-catalog"].Spec.Tasks {
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
	want := lastDigest(t, done(t, dir, "bindery", "build", "catalog", "all", "-t", "x:v1", "--dry-run", "--server",
		"none", "--platform", "linux/amd64"))
	if got, err := os.ReadFile(filepath.Join(dir, "bindery-compose.digest")); err != nil || string(got) != want {
		t.Errorf("%s, %v instead of %s", got, err, want)
	}
	if got := registry.Manifest("acme/community", "v1"); len(got) == 0 {
		t.Error("nothing was pushed")
	}
}
