package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/mirrortest"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// pipeline runs the tasks of a pipeline one after the other, as runAfter says, and those of a matrix at once.
// Workspaces are directories by their names.
func (m *machines) pipeline(objects map[string]tektonObject, name string, given map[string]any,
	workspaces map[string]string) {
	t := m.t
	t.Helper()
	p := objects[name]
	if p.Kind != "Pipeline" {
		t.Fatalf("no pipeline %q", name)
	}
	for _, param := range p.Spec.Params {
		if _, ok := given["params."+param.Name]; ok {
			continue
		}
		switch v := param.Default.(type) {
		case []any:
			given["params."+param.Name] = texts(v)
		case string:
			given["params."+param.Name] = v
		default:
			t.Fatalf("%s: no value for %s", name, param.Name)
		}
	}
	for n, task := range p.Spec.Tasks {
		if n > 0 && !slices.Equal(task.RunAfter, []string{p.Spec.Tasks[n-1].Name}) {
			t.Errorf("%s does not wait for %s", task.Name, p.Spec.Tasks[n-1].Name)
		}
		var own []string
		for _, w := range task.Workspaces {
			if workspaces[w.Name] == "" {
				t.Fatalf("%s: no workspace %s", task.Name, w.Name)
			}
			own = append(own, w.Name)
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
				runs = append(runs, m.task(objects[task.TaskRef.Name], values, own, workspaces))
			}
		}
		if len(task.Matrix.Params) == 0 {
			runs = append(runs, m.task(objects[task.TaskRef.Name], values, own, workspaces))
		}
		m.pods(task.Name, runs)
	}
}

// task is the pod of a task.
func (m *machines) task(o tektonObject, values map[string]any, given []string, workspaces map[string]string) podRun {
	t := m.t
	t.Helper()
	if o.Kind != "Task" || len(o.Spec.Steps) != 1 {
		t.Fatalf("%q is no task of one step", o.Metadata.Name)
	}
	for _, p := range o.Spec.Params {
		if _, ok := values["params."+p.Name]; !ok {
			if p.Default == nil {
				t.Fatalf("%s: no value for %s", o.Metadata.Name, p.Name)
			}
			values["params."+p.Name] = p.Default
		}
	}
	s := o.Spec.Steps[0]
	if s.Script != "" || !slices.Equal(s.Command, []string{"/bin/bindery"}) || s.Image != "$(params.bindery)" ||
		s.SecurityContext["runAsNonRoot"] != true || s.SecurityContext["allowPrivilegeEscalation"] != false ||
		s.SecurityContext["readOnlyRootFilesystem"] != true {
		t.Errorf("%s: %+v", o.Metadata.Name, s)
	}
	run := podRun{mounts: map[string]string{}}
	for _, w := range o.Spec.Workspaces {
		if !slices.Contains(given, w.Name) {
			t.Fatalf("%s: the pipeline gives no workspace %s", o.Metadata.Name, w.Name)
		}
		values["workspaces."+w.Name+".path"] = "/workspace/" + w.Name
		run.mounts["/workspace/"+w.Name] = workspaces[w.Name]
	}
	if len(given) != len(o.Spec.Workspaces) {
		t.Errorf("%s: the pipeline gives %q", o.Metadata.Name, given)
	}
	for _, v := range s.VolumeMounts {
		run.mounts[v.MountPath] = ""
	}
	run.args = substitute(t, s.Args, values)
	for _, e := range s.Env {
		run.env = append(run.env, substitute(t, []string{e.Name + "=" + e.Value}, values)...)
	}
	return run
}

// The pipelines of Tekton, with a process for each task of a matrix, killed at random and run again, leave the registry
// as one undivided run does.
func TestMirrorPipelines(t *testing.T) {
	source := mirrortest.Source(t)
	want, _ := undivided(t, source)
	objects := tektonObjects(t, mirrorDeployDir+"tekton.yaml")
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
	m.pipeline(tektonObjects(t, mirrorDeployDir+"tekton.yaml"), "bindery-migrate",
		map[string]any{"params.flags": []string{"--server=none"}}, map[string]string{"config": m.volume("config"),
			"credentials": m.volume("registry-credentials"), "reports": m.volume("reports")})
	if got := reg.Tags("acme/catalog"); !slices.Equal(got, []string{"v0", "v1", "v2", "v3", "v4"}) ||
		m.killed.Load() == 0 {
		t.Errorf("the tags are %q, %d were killed", got, m.killed.Load())
	}
}

// The run that is an example names a pipeline, gives what it asks for and has no other parameters.
func TestMirrorPipelineRun(t *testing.T) {
	var run struct {
		Kind string
		Spec struct {
			PipelineRef struct{ Name string } `yaml:"pipelineRef"`
			Params      []struct{ Name string }
			Workspaces  []struct{ Name string }
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, mirrorDeployDir+"tekton-run.yaml")), &run); err != nil {
		t.Fatal(err)
	}
	p := tektonObjects(t, mirrorDeployDir+"tekton.yaml")[run.Spec.PipelineRef.Name]
	if run.Kind != "PipelineRun" || p.Kind != "Pipeline" {
		t.Fatalf("%+v", run)
	}
	known := map[string]bool{}
	for _, have := range run.Spec.Params {
		known["parameter "+have.Name] = true
	}
	for _, have := range run.Spec.Workspaces {
		known["workspace "+have.Name] = true
	}
	for _, want := range p.Spec.Params {
		if want.Default == nil && !known["parameter "+want.Name] {
			t.Errorf("no parameter %s", want.Name)
		}
		delete(known, "parameter "+want.Name)
	}
	for _, want := range p.Spec.Workspaces {
		if !want.Optional && !known["workspace "+want.Name] {
			t.Errorf("no workspace %s", want.Name)
		}
		delete(known, "workspace "+want.Name)
	}
	if len(known) > 0 {
		t.Errorf("the pipeline does not know %v", known)
	}
}
