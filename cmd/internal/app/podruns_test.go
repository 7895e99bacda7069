package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// podRun is a container that a test runs as a process: what the pod's specification says, with directories of the test
// in place of its volumes.
type podRun struct {
	args, env []string
	// mounts are directories by their paths in the container; an empty one is new for each pod.
	mounts map[string]string
	// flagless: the flags of all commands are none of this one.
	flagless bool
}

// machines runs pods on this machine, and kills some of them.
type machines struct {
	t *testing.T
	// dir has a directory for each claim and each configuration map.
	dir string
	// hosts replaces the registries of the manifests.
	hosts *strings.Replacer
	// flags are added to each command.
	flags []string
	// kills is how many pods of each index may be killed, within a time below within.
	kills  int
	within time.Duration
	killed atomic.Int32
}

// volume is the directory of a claim, configuration map or secret.
func (m *machines) volume(name string) string {
	dir := filepath.Join(m.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	return dir
}

// addConfig writes the files of a configuration map.
func (m *machines) addConfig(c *corev1.ConfigMap) {
	for name, text := range c.Data {
		clitest.WriteFile(m.t, filepath.Join(m.volume(c.Name), name), m.hosts.Replace(text))
	}
}

// requireLogin makes a registry refuse requests without the credentials that the pods have.
func (m *machines) requireLogin(r *testregistry.Registry) {
	basic := base64.StdEncoding.EncodeToString([]byte("ci:s3cret"))
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Header.Get("Authorization") == "Basic "+basic {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	clitest.WriteFile(m.t, filepath.Join(m.volume("registry-credentials"), "config.json"),
		`{"auths":{"`+r.Host()+`":{"auth":"`+basic+`"}}}`)
}

// job runs the pods of a job, at once as far as it says, each again when it was killed.
func (m *machines) job(j *batchv1.Job) {
	m.t.Helper()
	spec := j.Spec.Template.Spec
	var runs []podRun
	for index := range max(int(deref(j.Spec.Completions)), 1) {
		c := spec.Containers[0]
		run := podRun{mounts: map[string]string{}}
		for _, v := range c.VolumeMounts {
			run.mounts[v.MountPath] = m.source(spec.Volumes, v.Name)
		}
		at := strings.NewReplacer()
		if j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion {
			at = strings.NewReplacer("$(JOB_COMPLETION_INDEX)", fmt.Sprint(index))
			run.env = append(run.env, fmt.Sprint("JOB_COMPLETION_INDEX=", index))
		}
		for _, a := range c.Args {
			run.args = append(run.args, at.Replace(a))
		}
		for _, e := range c.Env {
			run.env = append(run.env, e.Name+"="+e.Value)
		}
		runs = append(runs, run)
	}
	m.pods(j.Name, runs)
}

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// Source is the directory of a volume; empty for one that each pod gets empty.
func (m *machines) source(volumes []corev1.Volume, name string) string {
	for _, v := range volumes {
		switch {
		case v.Name != name:
		case v.PersistentVolumeClaim != nil:
			return m.volume(v.PersistentVolumeClaim.ClaimName)
		case v.ConfigMap != nil:
			return m.volume(v.ConfigMap.Name)
		case v.Secret != nil:
			return m.volume(v.Secret.SecretName)
		case v.EmptyDir != nil:
			return ""
		}
	}
	m.t.Fatalf("no volume %s", name)
	return ""
}

// pods runs pods at the same time until each has ended well.
func (m *machines) pods(name string, runs []podRun) {
	m.t.Helper()
	var all sync.WaitGroup
	for n, r := range runs {
		all.Go(func() {
			for attempt := range m.kills + 1 {
				dead, err := m.pod(r, attempt < m.kills)
				if err != nil {
					m.t.Errorf("%s, pod %d: %v", name, n, err)
				}
				if !dead {
					return
				}
			}
		})
	}
	all.Wait()
	if m.t.Failed() {
		m.t.FailNow()
	}
}

// pod runs one process, with a new directory for each volume that a pod has for itself. dead tells that it was killed.
func (m *machines) pod(r podRun, kill bool) (dead bool, err error) {
	own, err := os.MkdirTemp(m.dir, "pod-")
	if err != nil {
		return false, err
	}
	var paths []string
	// The longest path comes first: one may be in another.
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(r.mounts))) {
		to := r.mounts[at]
		if to == "" {
			to = filepath.Join(own, filepath.Base(at))
			if err := os.MkdirAll(to, 0o755); err != nil {
				return false, err
			}
		}
		paths = append(paths, at, to)
	}
	here := func(text string) string {
		head, path, ok := strings.Cut(text, "=")
		if !ok || strings.HasPrefix(text, "file://") {
			head, path = "", text
		} else {
			head += "="
		}
		scheme := ""
		if rest, ok := strings.CutPrefix(path, "file://"); ok {
			scheme, path = "file://", rest
		}
		for i := 0; i < len(paths); i += 2 {
			if rest, ok := strings.CutPrefix(path, paths[i]); ok && (rest == "" || rest[0] == '/') {
				return head + scheme + paths[i+1] + rest
			}
		}
		return m.hosts.Replace(text)
	}
	cmd := exec.Command(filepath.Join(clitest.BinDir, "bindery"))
	for _, a := range r.args {
		cmd.Args = append(cmd.Args, here(a))
	}
	if !r.flagless {
		cmd.Args = append(cmd.Args, m.flags...)
	}
	for _, e := range r.env {
		cmd.Env = append(cmd.Env, here(e))
	}
	cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH=1700000000") // files of two runs can be compared
	cmd.Dir = own
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return false, err
	}
	var fired atomic.Bool
	if kill {
		timer := time.AfterFunc(rand.N(m.within), func() {
			fired.Store(true)
			_ = cmd.Process.Kill()
		})
		defer timer.Stop()
	}
	if err := cmd.Wait(); err == nil {
		return false, nil
	} else if cmd.ProcessState.Exited() || !fired.Load() {
		return false, fmt.Errorf("%v: %w\n%s", cmd.Args, err, stderr.String())
	}
	m.killed.Add(1)
	return true, nil
}

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

// Task is the pod of a task of one step.
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
