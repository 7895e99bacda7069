package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/manual"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// signingSecret makes a key pair and returns the directory with what is secret of it, as the recipes mount it: the files
// release.key and passphrase, with the links of a mounted secret. release.pub is beside that directory.
func signingSecret(t *testing.T) (dir, public string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "signing")
	clitest.WriteFile(t, filepath.Join(dir, "..data", "passphrase"), "open sesame")
	clitest.Done(t, dir, "bindery", "keys", "generate", "--name", "release", "--sign-passphrase-file", "..data/passphrase")
	public = filepath.Join(filepath.Dir(dir), "release.pub")
	for from, to := range map[string]string{"release.pub": public, "release.key": filepath.Join(dir, "..data",
		"release.key")} {
		if err := os.Rename(filepath.Join(dir, from), to); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"release.key", "passphrase"} {
		if err := os.Symlink("..data/"+name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, public
}

// verifySigned complains unless an image is signed with a key, or is not although it should not be.
func verifySigned(t *testing.T, image, auth, public string, want bool) {
	t.Helper()
	got := clitest.RunProgram(t, t.TempDir(), "bindery", "verify", image, "--key", public, "--use-http", "--authfile", auth)
	if signed := got.Status == 0; signed != want {
		t.Errorf("%s: signed %t, wanted %t\n%s%s", image, signed, want, got.Stdout, got.Stderr)
	}
}

// With the key where a recipe expects it, its build is signed; without, it is not.
func TestCISigns(t *testing.T) {
	secret, public := signingSecret(t)
	key, passphrase := filepath.Join(secret, "release.key"), filepath.Join(secret, "passphrase")
	for name, file := range map[string]string{"gitlab": "gitlab-ci.yml", "github": "github.yaml",
		"github-container": "github-container.yaml", "jenkins": "Jenkinsfile"} {
		for _, signed := range []bool{true, false} {
			registry, dir := testregistry.New(t), t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
			job, tag, edits := ciBuild(t, name, registry, dir)
			if signed && strings.HasPrefix(name, "github") {
				job.env["SIGN_KEY"], job.env["SIGN_PASSPHRASE"] = clitest.ReadFile(t, key), clitest.ReadFile(t, passphrase)
			} else if signed {
				job.env["BINDERY_SIGN_KEY"], job.env["BINDERY_SIGN_PASSPHRASE_FILE"] = key, passphrase
			}
			for variable := range job.env {
				if strings.Contains(variable, "SIGN_") && !strings.Contains(clitest.ReadFile(t, ciDir+file), variable) {
					t.Errorf("%s does not name %s", file, variable)
				}
			}
			if out, err := job.run(t, dir, edits...); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, job.script, out)
				continue
			}
			verifySigned(t, registry.Host()+"/acme/catalog:"+tag, filepath.Join(dir, "auth.json"), public, signed)
		}
	}
}

// The action refuses a passphrase without a key: what should be signed would not be.
func TestActionNeedsTheKey(t *testing.T) {
	dir := t.TempDir()
	job, _, edits := ciBuild(t, "github", testregistry.New(t), dir)
	clitest.WriteFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
	job.env["SIGN_PASSPHRASE"] = "open sesame"
	if out, err := job.run(t, dir, edits...); err == nil || !strings.Contains(out, "::error::the input sign-passphrase") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The pod signs when its lines about signing are no comments any more.
func TestPodSigns(t *testing.T) {
	secret, public := signingSecret(t)
	registry := testregistry.New(t)
	m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer("registry.example.com", registry.Host()),
		flags: []string{"--use-http", "--server=none"}}
	m.requireLogin(registry)
	if err := os.Symlink(secret, filepath.Join(m.dir, "signing")); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(m.volume("catalog-source"), "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(strings.NewReplacer("# - {", "- {", "linux/amd64,linux/arm64",
		"linux/amd64").Replace(clitest.ReadFile(t, ciDir+"pod.yaml"))), &job); err != nil {
		t.Fatal(err)
	}
	m.job(&job)
	verifySigned(t, registry.Host()+"/acme/catalog:v1", filepath.Join(m.volume("registry-credentials"), "config.json"),
		public, true)
}

// tektonSignFlags are the flags of the examples that sign in a README of Tekton, with a key and without.
func tektonSignFlags(t *testing.T) (flags, keyless []string) {
	t.Helper()
	page, err := manual.Read(os.DirFS("../../.."), "deploy/tekton/task/bindery-build-catalog/0.1/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page.Blocks {
		var run struct {
			Params []struct {
				Name  string
				Value []string
			}
			Workspaces []struct {
				Name      string
				Secret    *corev1.SecretVolumeSource
				Projected *corev1.ProjectedVolumeSource
			}
		}
		if b.Language != "yaml" {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(b.Text), &run); err != nil {
			t.Fatal(err)
		}
		w := run.Workspaces[0]
		if run.Params[0].Name != "sign-flags" || w.Name != "signing" {
			t.Fatalf("%+v", run)
		}
		switch {
		case w.Secret != nil && w.Secret.SecretName == "signing":
			flags = run.Params[0].Value
		case w.Projected != nil && isIdentity(w.Projected):
			keyless = run.Params[0].Value
		default:
			t.Fatalf("%+v", w)
		}
	}
	if len(flags) == 0 || len(keyless) == 0 {
		t.Fatal("no example")
	}
	return flags, keyless
}

// Each pipeline of Tekton signs the catalogs that it pushes if it is given the workspace with the key and the flags of
// the example; the task that builds a catalog alone does, too.
func TestTektonSigns(t *testing.T) {
	objects := tektonObjects(t)
	flags, _ := tektonSignFlags(t)
	secret, public := signingSecret(t)
	source := mirrortest.Source(t)
	signed := func(m *machines, image string) {
		t.Helper()
		verifySigned(t, image, filepath.Join(m.volume("registry-credentials"), "config.json"), public, true)
	}
	build := func(pipeline, task string, params map[string]any, images ...string) {
		t.Helper()
		registry := testregistry.New(t)
		m := &machines{t: t, dir: t.TempDir(), hosts: strings.NewReplacer("REGISTRY", registry.Host()),
			flags: []string{"--use-http", "--server=none"}}
		m.requireLogin(registry)
		for _, name := range []string{"etcd", "prometheus"} {
			clitest.WriteFile(t, filepath.Join(m.volume("source"), name, "catalog.json"), clitest.PackageText(name))
		}
		clitest.WriteFile(t, filepath.Join(m.volume("source"), "catalog.yaml"), "name: c\nreferences:\n- name: etcd\n  image: "+
			registry.Host()+"/acme/packages/etcd:v1\n")
		registry.AddImage(t, "acme/index", "v1", clitest.DatabaseImage(t, filepath.Join(clitest.WorkDir(t), "small.db"), "amd64"))
		clitest.WriteFile(t, filepath.Join(m.volume("config"), "indexes.txt"), registry.Host()+"/acme/index:v1 -> "+
			registry.Host()+"/acme/migrated:v1\n")
		workspaces := map[string]string{"source": m.volume("source"), "config": m.volume("config"),
			"reports": m.volume("reports"), "credentials": m.volume("registry-credentials"), "signing": secret,
			"cache": m.volume("cache")}
		for name, value := range params {
			if text, ok := value.(string); ok {
				params[name] = m.hosts.Replace(text)
			}
		}
		params["params.sign-flags"] = flags
		if pipeline != "" {
			m.pipeline(objects, pipeline, params, workspaces)
		} else {
			params["results.digest.path"] = "/workspace/cache/digest"
			runs := m.steps(objects["Task "+task], params, []string{"source", "credentials", "signing", "cache"},
				workspaces)
			m.pods(task, runs[len(runs)-1:])
		}
		for _, image := range images {
			signed(m, registry.Host()+"/"+image)
		}
	}
	build("", "bindery-build-catalog", map[string]any{"params.image": "REGISTRY/acme/catalog:v1",
		"params.catalog": "etcd"}, "acme/catalog:v1")
	build("bindery-catalog", "", map[string]any{"params.packages": []string{"etcd"}, "params.tag": "v1",
		"params.repository": "REGISTRY/acme/packages", "params.image": "REGISTRY/acme/community:v1"},
		"acme/packages/etcd:v1", "acme/community:v1")
	build("bindery-migrate", "", map[string]any{"params.numbers": []string{"1"}, "params.parts": "1"},
		"acme/migrated:v1")
	for _, signs := range []string{"bindery-mirror", "bindery-mirror-from-disk"} {
		target := testregistry.New(t)
		m := newMachines(t, source, target)
		m.kills = 0
		workspaces := map[string]string{"config": m.volume("mirror-imageset"), "workspace": m.volume("workspace"),
			"credentials": m.volume("registry-credentials"), "media": m.volume("media"), "signing": secret}
		run := func(name string) {
			params := map[string]any{"params.destination": "docker://mirror.example.com/olm",
				"params.numbers": []string{"1"}, "params.parts": "1"}
			if name == signs {
				params["params.sign-flags"] = flags
			}
			m.pipeline(objects, name, params, workspaces)
		}
		if signs == "bindery-mirror" {
			run("bindery-mirror")
		} else {
			run("bindery-mirror-to-disk")
			run("bindery-mirror-from-disk")
		}
		signed(m, target.Host()+"/olm/acme/catalog:v1")
	}
}
