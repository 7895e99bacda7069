package app_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

const ciBasic = "Y2k6czNjcmV0" // ci:s3cret

// needsLogin makes a registry refuse requests without the credentials of the recipes, and writes these to a file.
func needsLogin(t *testing.T, registry *testregistry.Registry, file string) {
	t.Helper()
	registry.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Header.Get("Authorization") == "Basic "+ciBasic {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	clitest.WriteFile(t, file, `{"auths":{"`+registry.Host()+`":{"auth":"`+ciBasic+`"}}}`)
}

// ciSystems are the recipes that build.
var ciSystems = []string{"pod", "gitlab", "github", "github-container", "jenkins"}

// ciBuild is the job of a recipe that builds in dir, with the tag that it pushes and the edits for this registry.
func ciBuild(t *testing.T, name string, registry *testregistry.Registry, dir string) (job ciJob, tag string,
	edits []string) {
	t.Helper()
	auth, tag := filepath.Join(dir, "auth.json"), "sha"
	needsLogin(t, registry, auth)
	withFile := func(script, variable string) ciJob {
		return ciJob{shell: "sh", script: script, env: map[string]string{"REGISTRY_AUTH_FILE": auth, variable: tag}}
	}
	switch name {
	case "pod":
		job, tag = podJob(t, dir), "v1"
	case "gitlab":
		job = withFile(strings.Join(included(t)["bindery-build"].Script, "\n"), "CI_COMMIT_SHORT_SHA")
	case "jenkins":
		stages := jenkinsStages(t)
		job = withFile(stages["validate"]+stages["build"], "BUILD_NUMBER")
	default:
		jobs := githubJobs(t, name+".yaml")
		job = ciJob{shell: "bash", script: jobs["build"] + jobs["catalog"], env: map[string]string{
			"REGISTRY_AUTH": clitest.ReadFile(t, auth), "RUNNER_TEMP": t.TempDir(), "GITHUB_SHA": tag,
			"GITHUB_OUTPUT": filepath.Join(dir, "output"), "GITHUB_ENV": filepath.Join(dir, "env")}}
	}
	// Only released programs have the servers of other platforms.
	return job, tag, []string{"linux/amd64,linux/arm64", "linux/amd64,linux/arm64 --server=none",
		"registry.example.com", registry.Host()}
}

// The build of every recipe, run next to a checkout, pushes the catalog to a registry that requires the recipe's
// credentials and writes the digest; all recipes build the same image. An invalid catalog fails each of them.
func TestCIBuilds(t *testing.T) {
	digests := map[string]string{}
	for _, name := range ciSystems {
		registry, dir := testregistry.New(t), t.TempDir()
		job, tag, edits := ciBuild(t, name, registry, dir)
		clitest.WriteFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.json"), `{"schema": "olm.package", "name": "etcd"}`)
		if out, err := job.run(t, dir, edits...); err == nil {
			t.Errorf("%s builds an invalid catalog: %s", name, out)
		}
		clitest.WriteFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.json"), clitest.PackageText("etcd"))
		if out, err := job.run(t, dir, edits...); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, job.script, out)
			continue
		}
		digests[name] = clitest.ReadFile(t, filepath.Join(dir, "digest"))
		if len(registry.Manifest("acme/catalog", tag)) == 0 {
			t.Errorf("%s: nothing was pushed", name)
		}
		if strings.HasPrefix(name, "github") {
			if got := clitest.ReadFile(t, filepath.Join(dir, "output")); got != "digest="+digests[name]+"\n" {
				t.Errorf("%s: the output is %q", name, got)
			}
		}
	}
	for name, d := range digests {
		if d != digests["pod"] || !strings.HasPrefix(d, "sha256:") {
			t.Errorf("%s: %s, the pod %s", name, d, digests["pod"])
		}
	}
}

// git runs git in a directory.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c",
		"init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// The review of every recipe says what a merge request changes, fails for an invalid catalog and for a target that
// cannot be read, and has no credentials.
func TestCIReviews(t *testing.T) {
	jobs := map[string]ciJob{"gitlab": included(t)["bindery-review"].shellJob(map[string]string{
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"})}
	stages := jenkinsStages(t)
	jobs["jenkins"] = ciJob{shell: "sh", script: stages["validate"] + stages["review"]}
	summary := filepath.Join(t.TempDir(), "summary")
	jobs["github"] = ciJob{shell: "bash", script: githubJobs(t, "github.yaml")["review"],
		env: map[string]string{"GITHUB_STEP_SUMMARY": summary}}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "checkout")
			source := filepath.Join(dir, "catalog", "etcd", "catalog.json")
			clitest.WriteFile(t, source, clitest.PackageText("etcd"))
			git(t, dir, "init", "-q")
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-qm", "a catalog")
			git(t, dir, "clone", "-q", "--bare", ".", "../origin")
			git(t, dir, "remote", "add", "origin", "file://"+filepath.Dir(dir)+"/origin")
			if name != "gitlab" {
				git(t, dir, "clone", "-q", "../origin", "target-branch")
			}
			changes := func() string {
				out, err := job.run(t, dir)
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, job.script, out)
				}
				return clitest.ReadFile(t, filepath.Join(dir, "changes.txt"))
			}
			if got := changes(); got != "" && !strings.Contains(got, "equal") {
				t.Errorf("equal catalogs give %q", got)
			}
			clitest.WriteFile(t, filepath.Join(dir, "catalog", "new", "catalog.json"), clitest.PackageText("new"))
			for range 2 { // a checkout that is used again
				if got := changes(); !strings.Contains(got, "+ package new") {
					t.Errorf("a new package gives %q", got)
				}
			}
			if name == "github" && !strings.Contains(clitest.ReadFile(t, summary), "    + package new") {
				t.Errorf("the summary is %q", clitest.ReadFile(t, summary))
			}
			clitest.WriteFile(t, source, `{"schema": "olm.package", "name": "etcd"}`)
			if out, err := job.run(t, dir); err == nil {
				t.Errorf("an invalid catalog is accepted: %s", out)
			}
			clitest.WriteFile(t, source, clitest.PackageText("etcd"))
			if name == "gitlab" {
				git(t, dir+"/../origin", "branch", "-m", "main", "other")
			} else if err := os.RemoveAll(filepath.Join(dir, "target-branch")); err != nil {
				t.Fatal(err)
			}
			if out, err := job.run(t, dir); err == nil {
				t.Errorf("a target that is not there is accepted: %s", out)
			}
		})
	}
}

// The parallel jobs of the component that migrates do each line of the list once, and sign with the key of the project.
func TestCIMigrate(t *testing.T) {
	registry, dir := testregistry.New(t), t.TempDir()
	auth := filepath.Join(dir, "auth.json")
	needsLogin(t, registry, auth)
	database, list := clitest.WorkDir(t), ""
	for i := range 3 {
		name := fmt.Sprint("acme/index", i)
		registry.AddImage(t, name, "v1", clitest.DatabaseImage(t, filepath.Join(database, "small.db"), "amd64"))
		list += registry.Host() + "/" + name + ":v1 -> " + registry.Host() + "/acme/catalog:v" + fmt.Sprint(i) + "\n"
	}
	clitest.WriteFile(t, filepath.Join(dir, "indexes.txt"), list)
	secret, public := signingSecret(t)
	job := component(t, "migrate", map[string]string{"flags": "--server none", "parts": "2"})["bindery-migrate"]
	if fmt.Sprint(job.Parallel) != "2" {
		t.Errorf("the job is parallel %v", job.Parallel)
	}
	for i := range 2 {
		out, err := job.shellJob(map[string]string{"REGISTRY_AUTH_FILE": auth, "CI_NODE_INDEX": fmt.Sprint(i + 1),
			"CI_NODE_TOTAL": "2", "BINDERY_SIGN_KEY": filepath.Join(secret, "release.key"),
			"BINDERY_SIGN_PASSPHRASE_FILE": filepath.Join(secret, "passphrase")}).run(t, dir)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	got := slices.DeleteFunc(registry.Tags("acme/catalog"), func(tag string) bool {
		return strings.HasPrefix(tag, "sha256-")
	})
	if !slices.Equal(got, []string{"v0", "v1", "v2"}) {
		t.Errorf("the tags are %q", got)
	}
	verifySigned(t, registry.Host()+"/acme/catalog:v2", auth, public, true)
}

// The jobs of the component that mirrors leave the registry as one undivided run does.
func TestCIMirror(t *testing.T) {
	source := mirrortest.Source(t)
	want, _ := undivided(t, source)
	target, dir := testregistry.New(t), t.TempDir()
	target.Separate(true)
	auth := filepath.Join(dir, "auth.json")
	needsLogin(t, target, auth)
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"),
		mirrorManifests(t)["imageset.yaml"].configs[0].Data["imageset.yaml"])
	jobs := component(t, "mirror", map[string]string{"destination": "docker://mirror.example.com/olm", "parts": "3",
		"flags": "--registries-conf " + source.RegistriesConf(t, mirrortest.Host)})
	run := func(name string, env map[string]string) {
		t.Helper()
		env["REGISTRY_AUTH_FILE"], env["SOURCE_DATE_EPOCH"] = auth, "1700000000"
		if out, err := jobs[name].shellJob(env).run(t, dir, "mirror.example.com", target.Host()); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	for i := range 3 {
		run("bindery-mirror", map[string]string{"CI_NODE_INDEX": fmt.Sprint(i + 1), "CI_NODE_TOTAL": "3"})
	}
	if needs := jobs["bindery-mirror-publish"].Needs; len(needs) != 1 || needs[0].Job != "bindery-mirror" {
		t.Errorf("the catalogs wait for %v", needs)
	}
	run("bindery-mirror-publish", map[string]string{})
	clitest.SameRegistry(t, target, want)
	secret, public := signingSecret(t)
	for name, env := range map[string]map[string]string{"bindery-mirror": {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "1"},
		"bindery-mirror-publish": {}} {
		env["BINDERY_SIGN_KEY"] = filepath.Join(secret, "release.key")
		env["BINDERY_SIGN_PASSPHRASE_FILE"] = filepath.Join(secret, "passphrase")
		run(name, env)
	}
	verifySigned(t, target.Host()+"/olm/acme/catalog:v1", auth, public, true)
	paths := jobs["bindery-mirror-publish"].Artifacts.Paths
	if entries, err := os.ReadDir(filepath.Join(dir, paths[0])); err != nil || len(entries) == 0 {
		t.Errorf("no files for clusters: %v", err)
	}
}
