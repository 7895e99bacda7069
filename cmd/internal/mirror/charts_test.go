package mirror_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// chartWorld has a repository of charts and local ones.
type chartWorld struct{ *clitest.ReleaseWorld }

func newChartWorld(t *testing.T) chartWorld {
	w := chartWorld{clitest.NewReleaseWorld(t)}
	if err := os.CopyFS(filepath.Join(w.Dir, "fx"), releasetest.Files(t)); err != nil {
		t.Fatal(err)
	}
	return w
}

// charts writes an image set with the charts of a repository, as YAML in one line, and local ones.
func (w chartWorld) charts(name, charts string, local ...string) {
	w.Helper()
	text := "  helm:\n"
	if charts != "" {
		text += fmt.Sprintf("    repositories: [{name: fx, url: 'http://%s/charts', charts: %s}]\n", w.Servers.Host(), charts)
	}
	if len(local) > 0 {
		text += "    local:\n"
	}
	for _, at := range local {
		text += "    - path: fx/local/" + at + "\n"
	}
	w.Set(name, "", text)
}

// has fails the test unless the target has these images of charts, REPOSITORY:TAG.
func (w chartWorld) has(want ...string) {
	w.Helper()
	var got []string
	for _, repository := range w.Target.Repositories() {
		if base, ok := strings.CutPrefix(repository, "m/charts/"); ok {
			for _, tag := range w.Target.Tags(repository) {
				if !strings.HasSuffix(tag, ".sig") {
					got = append(got, base+":"+tag)
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("at the target: %q\nwant %q", got, want)
	}
}

var webImages = []string{"crd:v1", "hook:v1", "init:v1", "web:1.1.0"}

// The images of charts are mirrored: those of hooks and of jobs by the clock too, not those of subcharts that are off. A
// second run has nothing to do.
func TestCharts(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "[{name: web}, {name: cron, version: ~0.1}]", "umbrella")
	w.Expect("mirror plan -c set.yaml", 0, "CHART", "web 1.1.0", "umbrella 0.9.0", "charts/hook:v1")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --dry-run", 0, "nothing is copied in a dry run")
	w.has()
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --account account.json", 0, "chart web 1.1.0: 4 images", "chart umbrella 0.9.0: 2 images")
	all := append([]string{"cron:v1", "sidecar:v1", "db:v1", "web:1.0.0"}, webImages...)
	w.has(all...)
	var account struct {
		Charts []struct {
			Name, Version, KubeVersion, Digest string
			Images                             int
			Mirrored                           bool
		}
	}
	if err := json.Unmarshal([]byte(clitest.ReadFile(t, filepath.Join(w.Dir, "account.json"))), &account); err != nil || len(account.Charts) != 3 {
		t.Fatalf("%v, %+v", err, account)
	}
	for _, c := range account.Charts {
		if !c.Mirrored || c.Digest == "" || c.KubeVersion != "v1.33.0" || c.Images == 0 {
			t.Errorf("%+v", c)
		}
	}
	pinned, _ := filepath.Glob(filepath.Join(w.Dir, "ws/working-dir/isc_pinned_*.yaml"))
	if text := clitest.ReadFile(t, pinned[0]); !strings.Contains(text, "version: 1.1.0") || !strings.Contains(text, "version: 0.1.0") {
		t.Errorf("not pinned:\n%s", text)
	}
	w.Target.Forget()
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0, "8 images: 0 copied, 8 there before")
	if n := w.Target.Count("PUT "); n > 0 {
		t.Errorf("%d manifests are written again", n)
	}
	w.Expect("mirror resources -c set.yaml --workspace ws --to resources TARGET", 0)
	if text := clitest.ReadFile(t, filepath.Join(w.Dir, "resources/mapping.txt")); !strings.Contains(text, "charts/hook:v1=") {
		t.Errorf("mapping:\n%s", text)
	}
	w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "chart web 1.1.0: 4 images", "all is there")
	w.charts("more.yaml", "[{name: db}]")
	w.Expect("mirror verify -c more.yaml --workspace ws TARGET", 1, "chart db of http://", "no record that it was mirrored")
	w.Target.Untag("m/charts/hook", "v1")
	w.Expect("mirror verify --workspace ws TARGET", 1, "m/charts/hook:v1", "chart web 1.1.0")
}

// Through an archive nothing is fetched on the other side: neither an index nor a chart, and local charts are not there.
func TestChartsThroughArchive(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		t.Run(form, func(t *testing.T) {
			w := newChartWorld(t)
			w.charts("set.yaml", "[{name: web, version: '>=1.0'}, {name: cron}]", "umbrella")
			w.Expect("mirror run -c set.yaml file://media --archive-format "+form, 0, "chart umbrella 0.9.0: 2 images")
			w.Offline()
			if err := os.RemoveAll(filepath.Join(w.Dir, "fx")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(w.Dir, "media", "working-dir")); err != nil {
				t.Fatal(err)
			}
			w.Expect("mirror verify file://media", 0, "3 charts", "all is there")
			w.Expect("mirror run -c set.yaml --from media --workspace other TARGET", 0, "8 images: 8 copied", "chart web 1.1.0: 4 images")
			w.has(append([]string{"cron:v1", "sidecar:v1", "db:v1", "web:1.0.0"}, webImages...)...)
			w.Expect("mirror verify -c set.yaml --workspace other TARGET", 0, "all is there")
			w.charts("more.yaml", "[{name: web, version: '>=1.0'}, {name: db}]")
			w.Expect("mirror run -c more.yaml --from media --workspace other TARGET", 4, "1 chart could not be read", "chart db: there is no archive of the chart db")
		})
	}
}

// What charts were rendered with is in the archive: on the other side no flag is needed, and one that differs is an error.
func TestSettingsOfChartsThroughArchive(t *testing.T) {
	w := newChartWorld(t)
	clitest.WriteFile(t, filepath.Join(w.Dir, "values.yaml"), "sidecar: true\nimage: {tag: 1.0.0}\n")
	clitest.WriteFile(t, filepath.Join(w.Dir, "other.yaml"), "sidecar: false\n")
	w.charts("set.yaml", "[{name: web}]", "umbrella")
	w.Expect("mirror run -c set.yaml file://media --helm-values web=values.yaml --helm-tests --helm-kube-version 1.28 --helm-api-versions x.io/v1", 0)
	w.Offline()
	if err := os.RemoveAll(filepath.Join(w.Dir, "media", "working-dir")); err != nil {
		t.Fatal(err)
	}
	w.Expect("mirror verify file://media", 0, "2 charts", "all is there")
	for flag, want := range map[string]string{
		"--helm-values web=other.yaml":       "and web=other.yaml with another text is given",
		"--helm-values umbrella=values.yaml": "--helm-values umbrella=(none), and umbrella=values.yaml with another text is given",
		"--helm-kube-version 1.29":           "--helm-kube-version v1.28.0, and v1.29.0 is given",
		"--helm-api-versions x.io/v1beta":    "--helm-api-versions x.io/v1, and x.io/v1beta is given",
	} {
		if got := w.Run("mirror run -c set.yaml --from media --workspace odd TARGET --dry-run " + flag); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", flag, got)
		}
	}
	w.Expect("mirror run -c set.yaml --from media --workspace other TARGET", 0)
	w.has("crd:v1", "db:v1", "hook:v1", "init:v1", "sidecar:v1", "test:v1", "web:1.0.0")
	w.Expect("mirror run -c set.yaml --from media --workspace other TARGET --helm-values web=values.yaml --helm-tests --helm-kube-version v1.28.0", 0)
}

// Neither an archive nor a workspace, an account or a message has the password of a repository.
func TestPasswordsOfChartRepositories(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "[{name: web}, {name: nosuch}]")
	text := clitest.ReadFile(t, filepath.Join(w.Dir, "set.yaml"))
	clitest.WriteFile(t, filepath.Join(w.Dir, "set.yaml"), strings.Replace(text, "http://", "http://user:hunter2@", 1))
	for _, line := range []string{"file://media", "file://other --archive-format oc-mirror", "--workspace ws TARGET", "--from media --workspace ws2 TARGET"} {
		got := w.Run("mirror run -c set.yaml " + line + " --account account.json")
		if got.Status != 4 || strings.Contains(got.Stdout+got.Stderr, "hunter2") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	err := filepath.WalkDir(w.Dir, func(at string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(at) != "set.yaml" && strings.Contains(clitest.ReadFile(t, at), "hunter2") {
			t.Errorf("%s has the password", at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A chart that needs the APIs of OpenShift is rendered for it alone; one that can be rendered for neither is an error.
func TestChartsForOpenShiftAlone(t *testing.T) {
	w := newChartWorld(t)
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/os/Chart.yaml"), `{"apiVersion":"v2","name":"os","version":"0.1.0"}`)
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/os/templates/p.yaml"), `{{ if not (.Capabilities.APIVersions.Has "route.openshift.io/v1") }}{{ fail "needs routes" }}{{ end }}`+
		"\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: '"+releasetest.Host+"/charts/web:1.0.0'}]}\n")
	w.charts("set.yaml", "", "os")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0, "cannot be rendered for a cluster without the APIs of OpenShift", "needs routes")
	w.has("web:1.0.0")
	w.Expect("mirror plan -c set.yaml --compat oc-mirror", 1, "needs routes")
	w.charts("broken.yaml", "", "broken-0.3.0.tgz")
	w.Expect("mirror plan -c broken.yaml", 1, "a value for host is needed")
}

// A whole repository is mirrored without a list, through an archive too.
func TestWholeRepositoriesOfCharts(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "null")
	w.Expect("mirror run -c set.yaml file://media", 0, "chart db 0.2.0: 1 image", "chart web 2.0.0-rc.1: 1 image")
	w.Offline()
	w.Expect("mirror run -c set.yaml --from media TARGET", 0)
	w.has(append([]string{"cron:v1", "sidecar:v1", "db:v1", "web:1.0.0"}, webImages...)...)
}

// A chart that cannot be had or rendered stops no other one.
func TestBadCharts(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "[{name: wep}, {name: web, version: 9.9.9}, {name: web}]", "broken-0.3.0.tgz", "notachart.tgz", "nosuch")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 4, "5 charts could not be read", "a value for host is needed", "no archive compressed by gzip",
		"the repository has no chart \"wep\"", "no version of the chart web fits \"9.9.9\"", "fx/local/nosuch")
	w.has(webImages...)
	w.Expect("mirror plan -c set.yaml", 4, "not there: chart web 9.9.9")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --strict", 1, "a value for host is needed")
	w.charts("bad.yaml", "", "broken-0.3.0.tgz")
	w.Expect("mirror run -c bad.yaml --workspace ws TARGET", 1, "a value for host is needed")
	w.Servers.Down(true)
	w.charts("web.yaml", "[{name: web}, {name: db}]")
	w.Expect("mirror run -c web.yaml --workspace ws TARGET", 1, "chart web: http://", "chart db: http://")
	w.Servers.Down(false)
	// One image that is absent leaves the others.
	w.Source.Untag("charts/hook", "v1")
	w.Expect("mirror run -c web.yaml --workspace other TARGET/new", 4, "1 image of charts was not copied", "charts/hook:v1")
	for _, set := range []string{"", "-c web.yaml "} {
		w.Expect("mirror verify "+set+"--workspace other TARGET/new", 1, "charts/hook:v1", "chart web 1.1.0: 4 images")
	}
}

// Flags say what templates see.
func TestFlagsOfCharts(t *testing.T) {
	w := newChartWorld(t)
	clitest.WriteFile(t, filepath.Join(w.Dir, "values.yaml"), "sidecar: true\nimage: {tag: 1.0.0}\n")
	w.charts("set.yaml", "[{name: web}]")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-values web=values.yaml --helm-tests", 0, "6 images: 6 copied")
	w.has("crd:v1", "hook:v1", "init:v1", "sidecar:v1", "test:v1", "web:1.0.0")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-values web=nosuch.yaml", 1, "--helm-values nosuch.yaml")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-values values.yaml", 1, "expected CHART=FILE")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-values wep=values.yaml", 1, "the image set has no chart \"wep\"", "did you mean \"web\"")
	w.Expect("mirror plan -c set.yaml --helm-values wep=values.yaml", 1, "the image set has no chart \"wep\"")
	w.Set("none.yaml", "", "  additionalImages: [{name: '"+releasetest.Host+"/charts/web:1.0.0'}]\n")
	w.Expect("mirror plan -c none.yaml --helm-values web=values.yaml", 1, "the image set has no chart \"web\"", "leave the flag out")
	w.Expect("mirror run -c none.yaml --workspace ws TARGET --helm-values web=values.yaml", 1, "the image set has no chart \"web\"", "leave the flag out")
	for _, odd := range []string{"a_b/v1", "route.openshift.io", "a/b/c/d", "apps/v1/"} {
		w.Expect("mirror plan -c set.yaml --helm-api-versions "+odd, 1, "invalid --helm-api-versions value")
	}
	w.Expect("mirror plan -c set.yaml --helm-api-versions v1 --helm-api-versions apps/v1 --helm-api-versions apps/v1/Deployment", 0)
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-kube-version next", 1, "invalid --helm-kube-version value")
	clitest.WriteFile(t, filepath.Join(w.Dir, "values.yaml"), "- a\n")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --helm-values web=values.yaml", 1, "values of the chart web in values.yaml", "write fields, such as")
	w.charts("caps.yaml", "", "caps")
	w.Expect("mirror plan -c caps.yaml", 0, "charts/web:1.0.0", "charts/kube:v1.33.0-")
	w.Expect("mirror plan -c caps.yaml --helm-kube-version 1.28", 0, "charts/kube:v1.28.0-")
	w.Expect("mirror plan -c caps.yaml --compat oc-mirror", 0, "charts/kube:v1.20.0-")
	if got := w.Run("mirror plan -c caps.yaml --compat oc-mirror"); strings.Contains(got.Stdout, "charts/web:1.0.0") ||
		strings.Count(got.Stderr, "not mirrored, as oc-mirror does not look there") != 1 {
		t.Errorf("%+v", got)
	}
	w.Expect("mirror plan -c caps.yaml --compat oc-mirror --helm-api-versions route.openshift.io/v1", 0, "charts/web:1.0.0")
	w.Set("release.yaml", "channels: [{name: stable-4.16}]", "  helm: {local: [{path: fx/local/caps}]}\n")
	w.Expect("mirror plan -c release.yaml", 0, "charts/kube:v1.29.0-")
}

// A chart that wants another Kubernetes than it is rendered for gets a warning that names the flag, but not as oc-mirror.
func TestKubernetesThatChartsWant(t *testing.T) {
	w := newChartWorld(t)
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/next/Chart.yaml"), "apiVersion: v2\nname: next\nversion: 1.0.0\nkubeVersion: '>=1.40'\n")
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/next/templates/p.yaml"),
		"kind: Pod\nspec: {containers: [{image: '"+releasetest.Host+"/charts/web:1.0.0'}]}\n")
	w.charts("next.yaml", "", "next")
	w.Expect("mirror plan -c next.yaml", 0, "it wants Kubernetes >=1.40 and is rendered for v1.33.0", "--helm-kube-version", "charts/web:1.0.0")
	for _, more := range []string{"--helm-kube-version 1.41", "--compat oc-mirror"} {
		if got := w.Run("mirror plan -c next.yaml " + more); got.Status != 0 || strings.Contains(got.Stderr, "wants Kubernetes") {
			t.Errorf("%s: %+v", more, got)
		}
	}
}

// Of an index the platforms are copied that any of the charts with the image asks for.
func TestPlatformsOfCharts(t *testing.T) {
	w := newChartWorld(t)
	arm, amd := "platforms: [{os: linux, architecture: arm64}]", "platforms: [{os: linux, architecture: amd64}]"
	w.charts("arm.yaml", "[{name: web, "+arm+"}]")
	w.Expect("mirror run -c arm.yaml --workspace ws TARGET", 0)
	before := len(w.Target.Digests("m/charts/web"))
	w.charts("both.yaml", "[{name: web, "+arm+"}, {name: web, version: 1.1.0, "+amd+"}]")
	w.Expect("mirror run -c both.yaml --workspace ws TARGET", 0)
	if now := len(w.Target.Digests("m/charts/web")); before != 2 || now != 3 {
		t.Errorf("%d manifests, then %d", before, now)
	}
}

// Runs of shards divide the images; blocked ones are left out.
func TestShardsOfCharts(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "[{name: web}]")
	text := clitest.ReadFile(t, filepath.Join(w.Dir, "set.yaml"))
	clitest.WriteFile(t, filepath.Join(w.Dir, "set.yaml"), text+"  blockedImages: [{name: charts/hook}]\n")
	for n := range 2 {
		w.Expect(fmt.Sprintf("mirror run -c set.yaml --workspace ws%d TARGET --shard %d/2", n, n+1), 0)
	}
	w.Expect("mirror publish -c set.yaml --workspace ws TARGET", 0, "chart web 1.1.0: 4 images", "1 blocked")
	w.has("crd:v1", "init:v1", "web:1.1.0")
	for n := range 2 {
		w.Expect(fmt.Sprintf("mirror run -c set.yaml file://parts/%d --shard %d/2", n, n+1), 0)
	}
	w.Expect("mirror publish -c set.yaml --from parts file://parts/catalogs", 0)
	w.Offline()
	w.Target.Clear()
	w.Expect("mirror run -c set.yaml --from parts --workspace other TARGET", 0)
	w.has("crd:v1", "init:v1", "web:1.1.0")
}

// Images of a deleted chart go, but for those that another chart, or something else, names.
func TestDeletingCharts(t *testing.T) {
	w := newChartWorld(t)
	w.charts("set.yaml", "[{name: web, version: 1.0.0}, {name: web, version: 1.1.0}, {name: db}]", "umbrella")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
	w.charts("delete.yaml", "[{name: web}, {name: nosuch}]")
	w.Expect("mirror delete -c delete.yaml --workspace ws --list list.yaml TARGET", 4, "chart nosuch of http://", "no record that it was mirrored")
	list := clitest.ReadFile(t, filepath.Join(w.Dir, "list.yaml"))
	if strings.Count(list, "type: helmImage") != 1 || !strings.Contains(list, "m/charts/web:1.1.0") || !strings.Contains(list, "the chart web 1.0.0 names it") {
		t.Errorf("list:\n%s", list)
	}
	w.Expect("mirror delete --list list.yaml --yes TARGET", 0)
	w.has("crd:v1", "db:v1", "hook:v1", "init:v1", "web:1.0.0")
	w.charts("delete.yaml", "[{name: web, version: 1.0.0}]", "umbrella")
	w.Expect("mirror delete -c delete.yaml --workspace ws --list list.yaml TARGET", 0)
	w.Expect("mirror delete --list list.yaml --yes TARGET", 0)
	w.has("db:v1") // the chart db stays
	w.Expect("mirror verify --workspace ws TARGET", 0, "chart db 0.2.0: 1 image", "1 chart, ")
}

// Charts at a registry are found by their tags, and no index is asked for.
func TestChartsAtRegistries(t *testing.T) {
	w := newChartWorld(t)
	const kind = "application/vnd.oci.image.manifest.v1+json"
	for _, version := range []string{"1.0.0", "1.1.0"} {
		archive := clitest.ReadFile(t, filepath.Join(w.Dir, "fx/charts/web-"+version+".tgz"))
		layer, config := w.Source.AddBlob([]byte(archive)), w.Source.AddBlob([]byte("{}"))
		w.Source.AddManifest("helm/web", version, kind, fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":`+
			`"application/vnd.cncf.helm.config.v1+json","digest":%q,"size":2},"layers":[{"mediaType":`+
			`"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":%q,"size":%d}]}`, kind, config, layer, len(archive)))
	}
	for version, image := range map[string]string{"1.0.0": "web:1.0.0", "": "web:1.1.0", "~1.0": "web:1.0.0"} {
		w.Target.Clear()
		w.Set("set.yaml", "", "  helm: {repositories: [{url: 'oci://"+releasetest.Host+"/helm', charts: [{name: web, version: '"+version+"'}]}]}\n")
		w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
		w.has("crd:v1", "hook:v1", "init:v1", image)
	}
	w.Set("set.yaml", "", "  helm: {repositories: [{url: 'oci://"+releasetest.Host+"/helm', charts: [{name: nosuch}]}]}\n")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 1, "there is no chart "+releasetest.Host+"/helm/nosuch")
	w.Set("set.yaml", "", "  helm: {repositories: [{url: 'oci://"+releasetest.Host+"/charts', charts: [{name: web, version: 1.1.0}]}]}\n")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 1, "is no chart: it has no layer")
}

// An image without a registry is one of Docker Hub, as it is for a cluster, and gets a valid mirror set.
func TestImagesOfDockerHubInCharts(t *testing.T) {
	w := newChartWorld(t)
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/hub/Chart.yaml"), `{"apiVersion":"v2","name":"hub","version":"0.1.0"}`)
	clitest.WriteFile(t, filepath.Join(w.Dir, "fx/local/hub/templates/p.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"+
		"  containers: [{name: a, image: 'nginx:1.27'}, {name: b, image: acme/tool}, {name: c, image: 'docker.io/redis:7'}, {name: d, image: 'index.docker.io/mongo:8'}]\n")
	w.charts("set.yaml", "", "hub")
	w.Expect("mirror plan -c set.yaml", 0, "docker.io/library/nginx:1.27", "docker.io/acme/tool:latest", "has no tag: latest is taken")
	w.Expect("mirror resources -c set.yaml --workspace ws --to resources TARGET", 0)
	target := w.Target.Host() + "/m"
	mapping := clitest.ReadFile(t, filepath.Join(w.Dir, "resources/mapping.txt"))
	if want := "docker://docker.io/acme/tool:latest=docker://" + target + "/acme/tool:latest\ndocker://docker.io/library/mongo:8=docker://" +
		target + "/mongo:8\ndocker://docker.io/library/nginx:1.27=docker://" + target + "/nginx:1.27\ndocker://docker.io/library/redis:7=docker://" +
		target + "/redis:7\n"; mapping != want {
		t.Errorf("%s", mapping)
	}
	itms := clitest.ReadFile(t, filepath.Join(w.Dir, "resources/itms-oc-mirror.yaml"))
	for _, want := range []string{"source: docker.io/library/nginx\n", "source: docker.io/acme\n", "source: docker.io/library/redis\n", "source: docker.io/library/mongo\n", "- " + target + "/nginx\n"} {
		if !strings.Contains(itms, want) {
			t.Errorf("no %q in\n%s", want, itms)
		}
	}
}

// Certificates of repositories are verified unless a flag says otherwise, also under the name oc-mirror.
func TestCertificatesOfChartRepositories(t *testing.T) {
	w := newChartWorld(t)
	server := httptest.NewTLSServer(w.Servers)
	t.Cleanup(server.Close)
	w.Set("set.yaml", "", "  helm: {repositories: [{url: '"+server.URL+"/charts', charts: [{name: db}]}]}\n")
	w.Expect("mirror plan -c set.yaml", 1, "certificate signed by unknown authority")
	w.Expect("mirror plan -c set.yaml --tls-verify=false", 0, "charts/db:v1")
	run := func(flags ...string) clitest.Result {
		args := append([]string{"-c", "set.yaml", "--workspace", "file://ws", "docker://" + w.Target.Host() + "/m", "--dest-tls-verify=false"}, flags...)
		return clitest.Finish(t, clitest.Command(w.Dir, "oc-mirror", args...))
	}
	if got := run(); got.Status != 16 || !strings.Contains(got.Stderr, "unknown authority") {
		t.Errorf("%+v", got)
	}
	if got := run("--src-tls-verify=false", "--dry-run"); strings.Contains(got.Stderr, "unknown authority") {
		t.Errorf("%+v", got)
	}
}
