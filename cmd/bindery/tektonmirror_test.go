package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// pipeline runs the tasks of a pipeline one after the other, as runAfter says, and those of a matrix at once.
// Workspaces are directories by their names.
func (m *machines) pipeline(objects map[string]tektonObject, name string, given map[string]any,
	workspaces map[string]string) {
	t := m.t
	t.Helper()
	p, ok := objects["Pipeline "+name]
	if !ok {
		t.Fatalf("no pipeline %q", name)
	}
	p.defaults(t, given)
	for n, task := range p.Spec.Tasks {
		if n > 0 && !slices.Equal(task.RunAfter, []string{p.Spec.Tasks[n-1].Name}) {
			t.Errorf("%s does not wait for %s", task.Name, p.Spec.Tasks[n-1].Name)
		}
		var own []string
		for _, w := range task.Workspaces {
			if workspaces[w.Name] != "" {
				own = append(own, w.Name)
			} else if !p.optional(w.Name) {
				t.Fatalf("%s: no workspace %s", task.Name, w.Name)
			}
		}
		values := map[string]any{}
		for _, param := range task.Params {
			got := substitute(t, texts(param.Value), given)
			if values["params."+param.Name] = got; !strings.HasSuffix(texts(param.Value)[0], "[*])") {
				values["params."+param.Name] = got[0]
			}
		}
		runs := []podRun{}
		for _, param := range task.Matrix.Params {
			for _, one := range substitute(t, texts(param.Value), given) {
				values["params."+param.Name] = one
				runs = append(runs, m.task(objects["Task "+task.TaskRef.Name], values, own, workspaces))
			}
		}
		if len(task.Matrix.Params) == 0 {
			runs = append(runs, m.task(objects["Task "+task.TaskRef.Name], values, own, workspaces))
		}
		m.pods(task.Name, runs)
	}
}

// task is the pod of a task of one step.
func (m *machines) task(o tektonObject, values map[string]any, given []string, workspaces map[string]string) podRun {
	m.t.Helper()
	runs := m.steps(o, values, given, workspaces)
	if len(runs) != 1 {
		m.t.Fatalf("%q has %d steps", o.Metadata.Name, len(runs))
	}
	return runs[0]
}

// steps are the steps of a task. Workspaces that are not given have an empty path, as in Tekton.
func (m *machines) steps(o tektonObject, values map[string]any, given []string,
	workspaces map[string]string) (runs []podRun) {
	t := m.t
	t.Helper()
	if o.Kind != "Task" {
		t.Fatalf("%+v is no task", o)
	}
	o.defaults(t, values)
	if values["results.digest.path"] == nil {
		values["results.digest.path"] = "/tmp/digest"
	}
	restricted(t, o)
	mounts, known := map[string]string{}, map[string]bool{}
	for _, w := range o.Spec.Workspaces {
		known[w.Name] = true
		if !slices.Contains(given, w.Name) {
			if !w.Optional {
				t.Fatalf("%s: the pipeline gives no workspace %s", o.Metadata.Name, w.Name)
			}
			values["workspaces."+w.Name+".path"] = ""
			continue
		}
		values["workspaces."+w.Name+".path"] = "/workspace/" + w.Name
		mounts["/workspace/"+w.Name] = workspaces[w.Name]
	}
	for _, name := range given {
		if !known[name] {
			t.Errorf("%s has no workspace %s", o.Metadata.Name, name)
		}
	}
	for _, s := range o.Spec.Steps {
		run := podRun{mounts: maps.Clone(mounts)}
		for _, v := range s.VolumeMounts {
			run.mounts[v.MountPath] = ""
		}
		run.args = substitute(t, s.Args, values)
		for _, e := range s.Env {
			run.env = append(run.env, substitute(t, []string{e.Name + "=" + e.Value}, values)...)
		}
		runs = append(runs, run)
	}
	return runs
}

// The pipelines of Tekton, with a process for each task of a matrix, killed at random and run again, leave the registry
// as one undivided run does.
func TestMirrorPipelines(t *testing.T) {
	source := mirrortest.Source(t)
	want, _ := undivided(t, source)
	objects := tektonObjects(t)
	for _, names := range [][]string{{"bindery-mirror"}, {"bindery-mirror-to-disk", "bindery-mirror-from-disk"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			target := testregistry.New(t)
			m := newMachines(t, source, target)
			workspaces := map[string]string{"config": m.volume("mirror-imageset"), "workspace": m.volume("workspace"),
				"credentials": m.volume("registry-credentials"), "media": m.volume("media")}
			for _, name := range names {
				m.pipeline(objects, name, map[string]any{"params.destination": "docker://mirror.example.com/olm"},
					workspaces)
			}
			if m.killed.Load() == 0 {
				t.Error("no process was killed")
			}
			sameRegistry(t, target, want)
		})
	}
}

func TestMigratePipeline(t *testing.T) {
	reg, dir := testregistry.New(t), workDir(t)
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer(), flags: []string{"--use-http"}, kills: 3,
		within: 400 * time.Millisecond}
	m.requireLogin(reg)
	list := ""
	for i := range 5 {
		name := fmt.Sprint("acme/index", i)
		reg.AddImage(t, name, "v1", databaseImage(t, filepath.Join(dir, "small.db"), "amd64"))
		list += reg.Host() + "/" + name + ":v1 -> " + reg.Host() + "/acme/catalog:v" + fmt.Sprint(i) + "\n"
	}
	writeFile(t, filepath.Join(m.volume("config"), "indexes.txt"), list)
	m.pipeline(tektonObjects(t), "bindery-migrate",
		map[string]any{"params.flags": []string{"--server=none"}}, map[string]string{"config": m.volume("config"),
			"credentials": m.volume("registry-credentials"), "reports": m.volume("reports")})
	if got := reg.Tags("acme/catalog"); !slices.Equal(got, []string{"v0", "v1", "v2", "v3", "v4"}) ||
		m.killed.Load() == 0 {
		t.Errorf("the tags are %q, %d were killed", got, m.killed.Load())
	}
}

// The runs that are examples name a task or a pipeline, give what it needs and nothing that it does not know.
func TestTektonSamples(t *testing.T) {
	type named []struct {
		Name, Workspace string
	}
	type runnable struct {
		Name, RunAfter any
		TaskRef        struct{ Name, Resolver string } `yaml:"taskRef"`
		PipelineRef    struct{ Name string }           `yaml:"pipelineRef"`
		PipelineSpec   struct {
			Tasks []struct {
				Name               string
				TaskRef            struct{ Name, Resolver string } `yaml:"taskRef"`
				Params, Workspaces named
			}
		} `yaml:"pipelineSpec"`
		Params, Workspaces named
	}
	objects := tektonObjects(t)
	files, err := filepath.Glob("../../deploy/tekton/*/*/*/samples/*.yaml")
	if err != nil || len(files) != len(objects) {
		t.Fatal(files, err)
	}
	fits := func(file, name string, params, workspaces named) {
		o, ok := objects[name]
		if !ok {
			t.Errorf("%s: no %s", file, name)
		}
		given := map[string]bool{}
		for _, p := range params {
			given["parameter "+p.Name] = true
		}
		for _, w := range workspaces {
			given["workspace "+w.Name] = true
		}
		for _, p := range o.Spec.Params {
			if p.Default == nil && !given["parameter "+p.Name] {
				t.Errorf("%s: no parameter %s", file, p.Name)
			}
			delete(given, "parameter "+p.Name)
		}
		for _, w := range o.Spec.Workspaces {
			if !w.Optional && !given["workspace "+w.Name] {
				t.Errorf("%s: no workspace %s", file, w.Name)
			}
			delete(given, "workspace "+w.Name)
		}
		if len(given) > 0 {
			t.Errorf("%s: %s does not know %v", file, name, given)
		}
	}
	for _, file := range files {
		var run struct{ Spec runnable }
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &run); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		own := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		s, uses := run.Spec, 0
		for _, task := range s.PipelineSpec.Tasks {
			if task.TaskRef.Resolver == "" {
				fits(file, "Task "+task.TaskRef.Name, task.Params, task.Workspaces)
				if task.TaskRef.Name == own {
					uses++
				}
			}
		}
		if s.TaskRef.Name == own {
			fits(file, "Task "+own, s.Params, s.Workspaces)
			uses++
		}
		if s.PipelineRef.Name == own {
			fits(file, "Pipeline "+own, s.Params, s.Workspaces)
			uses++
		}
		if uses != 1 {
			t.Errorf("%s does not use %s", file, own)
		}
	}
}
