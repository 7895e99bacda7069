package app_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

const mirrorDeployDir = "../../../deploy/mirror/"

// mirrorManifest has the objects of a file in deploy/mirror.
type mirrorManifest struct {
	jobs    []*batchv1.Job
	configs []*corev1.ConfigMap
	claims  []*corev1.PersistentVolumeClaim
}

// mirrorManifests reads the files of Kubernetes in deploy/mirror; fields that Kubernetes does not know are errors.
func mirrorManifests(t *testing.T) map[string]*mirrorManifest {
	t.Helper()
	files, err := filepath.Glob(mirrorDeployDir + "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[string]*mirrorManifest{}
	for _, file := range files {
		name := filepath.Base(file)
		m := &mirrorManifest{}
		for _, text := range strings.Split(clitest.ReadFile(t, file), "\n---\n") {
			var kind struct{ Kind string }
			if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var into any
			switch kind.Kind {
			case "Job":
				m.jobs = append(m.jobs, &batchv1.Job{})
				into = m.jobs[len(m.jobs)-1]
			case "ConfigMap":
				m.configs = append(m.configs, &corev1.ConfigMap{})
				into = m.configs[len(m.configs)-1]
			case "PersistentVolumeClaim":
				m.claims = append(m.claims, &corev1.PersistentVolumeClaim{})
				into = m.claims[len(m.claims)-1]
			default:
				t.Fatalf("%s: unknown kind %q", name, kind.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		out[name] = m
	}
	return out
}

// What the jobs refer to is there: volumes, configuration maps, claims. A job that divides work is indexed, has as many
// pods as parts, and runs a pod again that was killed.
func TestMirrorManifests(t *testing.T) {
	all := mirrorManifests(t)
	known := map[string]*corev1.PersistentVolumeClaim{}
	for _, m := range all {
		for _, c := range m.configs {
			known["config "+c.Name] = nil
		}
		for _, c := range m.claims {
			known["claim "+c.Name] = c
		}
	}
	for name, m := range all {
		for _, j := range m.jobs {
			spec := j.Spec.Template.Spec
			c := spec.Containers[0]
			indexed := j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
			part := fmt.Sprintf("--shard=job/%d", deref(j.Spec.Completions))
			switch {
			case len(spec.Containers) != 1 || !slices.Equal(c.Command, []string{"/bin/bindery"}):
				t.Errorf("%s runs something else: %v", name, c.Command)
			case indexed != slices.Contains(c.Args, part):
				t.Errorf("%s: indexed %v, %q", name, indexed, c.Args)
			case indexed && (deref(j.Spec.Parallelism) != deref(j.Spec.Completions) ||
				deref(j.Spec.BackoffLimitPerIndex) == 0), !indexed && deref(j.Spec.BackoffLimit) == 0:
				t.Errorf("%s: %+v", name, j.Spec)
			case j.Spec.PodFailurePolicy != nil && spec.RestartPolicy != corev1.RestartPolicyNever:
				t.Errorf("%s: a failure policy needs restartPolicy Never", name)
			case c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem:
				t.Errorf("%s: the root can be written", name)
			case c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero():
				t.Errorf("%s: no memory is asked for", name)
			}
			writable := ""
			for _, v := range c.VolumeMounts {
				at := slices.IndexFunc(spec.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name })
				if at < 0 {
					t.Fatalf("%s: no volume %s", name, v.Name)
				}
				of := spec.Volumes[at]
				if of.EmptyDir != nil {
					writable = v.MountPath
				}
				if of.ConfigMap != nil {
					if _, ok := known["config "+of.ConfigMap.Name]; !ok {
						t.Errorf("%s: no configuration map %s", name, of.ConfigMap.Name)
					}
				}
				if of.PersistentVolumeClaim == nil {
					continue
				}
				claim := known["claim "+of.PersistentVolumeClaim.ClaimName]
				if claim == nil {
					t.Errorf("%s: no claim %s", name, of.PersistentVolumeClaim.ClaimName)
				} else if indexed && claim.Spec.AccessModes[0] != corev1.ReadWriteMany {
					t.Errorf("%s: several pods use %s, which is %s", name, claim.Name, claim.Spec.AccessModes[0])
				}
			}
			for _, e := range c.Env {
				if e.Name == "TMPDIR" && e.Value != writable {
					t.Errorf("%s: TMPDIR is %s", name, e.Value)
				}
			}
			if len(c.VolumeMounts) != len(spec.Volumes) {
				t.Errorf("%s: %d volumes, %d mounts", name, len(spec.Volumes), len(c.VolumeMounts))
			}
		}
	}
}

// newMachines returns machines for mirrors: sources are those of the fixture, and mirror.example.com is the target,
// which asks for credentials.
func newMachines(t *testing.T, source, target *testregistry.Registry) *machines {
	target.Separate(true)
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer("mirror.example.com", target.Host()),
		flags: []string{"--use-http", "--registries-conf", source.RegistriesConf(t, mirrortest.Host)}, kills: 6,
		within: 150 * time.Millisecond}
	m.requireLogin(target)
	for _, f := range mirrorManifests(t) {
		for _, c := range f.configs {
			m.addConfig(c)
		}
	}
	return m
}

// undivided mirrors the image set of the manifests in one run, and returns the target with the files for clusters.
func undivided(t *testing.T, source *testregistry.Registry) (*testregistry.Registry, map[string]string) {
	target := testregistry.New(t)
	m := newMachines(t, source, target)
	m.kills = 0
	m.pods("undivided", []podRun{{args: []string{"mirror", "run", "--config=/config/imageset.yaml",
		"--workspace=/workspace", "docker://mirror.example.com/olm"},
		env: []string{"REGISTRY_AUTH_FILE=/credentials/config.json", "TMPDIR=/tmp"},
		mounts: map[string]string{"/config": m.volume("mirror-imageset"), "/workspace": m.volume("whole"),
			"/credentials": m.volume("registry-credentials"), "/tmp": ""}}})
	return target, clusterFiles(t, m.volume("whole"), target)
}

// clusterFiles are the files for clusters in a workspace, as of any registry.
func clusterFiles(t *testing.T, workspace string, target *testregistry.Registry) map[string]string {
	t.Helper()
	out := clitest.Contents(t, filepath.Join(workspace, "working-dir", "cluster-resources"))
	for name, text := range out {
		out[name] = strings.ReplaceAll(text, target.Host(), "mirror.example.com")
	}
	return out
}

// Four processes stand for the pods of each job, are killed at random and run again. The registry is in the end as
// after one undivided run, and so are the files for clusters.
func TestMirrorJobs(t *testing.T) {
	source := mirrortest.Source(t)
	want, wantFiles := undivided(t, source)
	files := mirrorManifests(t)
	for name, steps := range map[string][]string{
		"to a registry": {"run.yaml", "publish.yaml"},
		"by a volume":   {"to-disk.yaml", "to-disk-publish.yaml", "from-disk.yaml", "from-disk-publish.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			target := testregistry.New(t)
			m := newMachines(t, source, target)
			media := m.volume("mirror-media")
			for _, step := range steps {
				if len(target.Tags("olm/acme/catalog")) > 0 {
					t.Errorf("a catalog is there before %s", step)
				}
				before := clitest.Snapshot(t, media)
				m.job(files[step].jobs[0])
				if step == "from-disk.yaml" && clitest.Snapshot(t, media) != before {
					t.Error("the volume was written to")
				}
			}
			if m.killed.Load() == 0 {
				t.Error("no process was killed")
			}
			t.Logf("%d processes were killed", m.killed.Load())
			clitest.SameRegistry(t, target, want)
			got := clusterFiles(t, m.volume("mirror-workspace"), target)
			if len(got) == 0 || !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(wantFiles))) {
				t.Errorf("%d files for clusters, and not %d", len(got), len(wantFiles))
			}
			for name, text := range wantFiles {
				if got[name] != text {
					t.Errorf("%s is\n%s\nand not\n%s", name, got[name], text)
				}
			}
			if strings.Contains(name, "volume") {
				clitest.Done(t, m.dir, "bindery", "mirror", "verify", "file://"+media)
			}
		})
	}
}

// The job that migrates a list, killed at random, does each line once: an undivided run finds all of them done.
func TestMigrateJob(t *testing.T) {
	reg, dir := testregistry.New(t), clitest.WorkDir(t)
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer("registry.example.com", reg.Host()),
		flags: []string{"--use-http", "--server=none"}, kills: 3, within: 400 * time.Millisecond}
	m.requireLogin(reg)
	file := mirrorManifests(t)["migrate.yaml"]
	m.addConfig(file.configs[0])
	for i := range 6 {
		reg.AddImage(t, "acme/index", fmt.Sprint("v", i+1), clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "amd64"))
	}
	m.job(file.jobs[0])
	m.kills = 0
	list, reports := m.volume("migrate-list"), m.volume("migrate-reports")
	m.pods("whole",
		[]podRun{{args: []string{"migrate", "--from-file=/config/indexes.txt", "--report-dir=/reports", "--push",
			"--verify", "--results=/work/results"},
			env: []string{"TMPDIR=/work", "REGISTRY_AUTH_FILE=/credentials/config.json"},
			mounts: map[string]string{"/config": list, "/reports": reports, "/work": m.volume("work"),
				"/credentials": m.volume("registry-credentials")}}})
	results := clitest.LineResults(t, clitest.ReadFile(t, filepath.Join(m.volume("work"), "results")))
	for _, r := range results {
		if !r.Before || r.Status != "done" {
			t.Errorf("line %d was not done by its part", r.Line)
		}
	}
	want := reg.Manifest("acme/catalog", "v1")
	for i := range 6 {
		if got := reg.Manifest("acme/catalog", fmt.Sprint("v", i+1)); len(got) == 0 || !bytes.Equal(got, want) {
			t.Errorf("v%d is not as v1", i+1)
		}
	}
	if len(results) != 6 || m.killed.Load() == 0 {
		t.Errorf("%d lines, %d killed", len(results), m.killed.Load())
	}
	if entries, err := os.ReadDir(reports); err != nil || len(entries) != 6 {
		t.Errorf("%v, %v", entries, err)
	}
}
