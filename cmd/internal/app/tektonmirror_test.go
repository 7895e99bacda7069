package app_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

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
			clitest.SameRegistry(t, target, want)
		})
	}
}

func TestMigratePipeline(t *testing.T) {
	reg, dir := testregistry.New(t), clitest.WorkDir(t)
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer(), flags: []string{"--use-http"}, kills: 3,
		within: 400 * time.Millisecond}
	m.requireLogin(reg)
	list := ""
	for i := range 5 {
		name := fmt.Sprint("acme/index", i)
		reg.AddImage(t, name, "v1", clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "amd64"))
		list += reg.Host() + "/" + name + ":v1 -> " + reg.Host() + "/acme/catalog:v" + fmt.Sprint(i) + "\n"
	}
	clitest.WriteFile(t, filepath.Join(m.volume("config"), "indexes.txt"), list)
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
	files, err := filepath.Glob("../../../deploy/tekton/*/*/*/samples/*.yaml")
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
		if err := yaml.Unmarshal([]byte(clitest.ReadFile(t, file)), &run); err != nil {
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
