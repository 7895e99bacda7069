package ocmirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// closedPort is an address where nothing listens.
const closedPort = "127.0.0.1:1"

// releases are the recorded runs with releases of OpenShift.
var releases = &recording{runs: releasetest.Runs, fill: releasetest.Fill, manifests: releasetest.Manifests,
	source: "127.0.0.1:46501", target: "127.0.0.1:46502", cache: "46517", differences: "release-differences.txt",
	strict: true, prepare: prepareReleases, before: beforeRelease}

// emptied are the steps before which the destination was emptied.
var emptied = map[string]bool{
	"r07-two-archs/02-m2d": true, "r09-release-tag/02-m2d": true, "r09c-release-unsigned/03-m2d-unsigned-images": true,
	"r10-graph/03-m2d": true, "r10b-graph-override/04-working-dir-only": true, "r11-kubevirt/02-m2d": true,
	"r13-missing-component/03-m2d": true, "r13b-odd-releases/01-no-image-references": true,
	"r13b-odd-releases/02-release-absent": true, "r13b-odd-releases/03-component-by-tag": true,
	"r13b-odd-releases/04-empty-reference": true, "r19-everything/03-d2m-part": true,
	"r18-helm-repo/02-m2d": true, "r18b-helm-local/02-m2d": true, "r18f-helm-no-version/02-m2d": true,
	"r18g-helm-image-absent/02-m2d": true,
}

// lastAlone are the steps from an archive that get what the last run wrote, and not what earlier runs left beside it.
var lastAlone = map[string]bool{"r25-incremental/04-d2m-2": true}

// afresh are the steps before which the workspace is removed, as the step before wrote an archive, which it did not
// with oc-mirror: the blobs of the one are not in the other.
var afresh = map[string]bool{"r02b-unsigned-component/02-m2d-remove-signatures": true,
	"r09c-release-unsigned/04-m2d-remove-signatures": true}

// Started as oc-mirror the program does with releases what oc-mirror did in the recorded runs: exit statuses, images
// and tags at the destination, cluster resources, workspaces, archives, pinned configurations, mappings and lists to
// delete.
func TestRecordedRunsOfOcMirrorWithReleases(t *testing.T) { releases.run(t, nil) }

// prepareReleases starts the servers of a scenario.
func prepareReleases(r *replay) {
	r.world = releasetest.Servers(r)
	proxy, authority := r.world.Proxy(r, r.source)
	if err := os.CopyFS(filepath.Join(r.dir, "fx"), releasetest.Files(r)); err != nil {
		r.Fatal(err)
	}
	r.names = append(r.names, "127.0.0.1:46503", r.world.Host(), "127.0.0.1:46504",
		strings.TrimPrefix(proxy, "http://"), "127.0.0.1:46598", closedPort, "$TLS/ca.pem", authority,
		"$TLS", filepath.Join(r.dir, "tls"))
	if r.scenario == "r18g-helm-image-absent" {
		dir := filepath.Join(r.dir, "local", "gone")
		clitest.WriteFile(r.T, filepath.Join(dir, "Chart.yaml"), `{"apiVersion":"v2","name":"gone","version":"0.1.0"}`)
		clitest.WriteFile(r.T, filepath.Join(dir, "templates", "p.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"+
			"  containers:\n  - {name: a, image: 'registry.example.com/charts/nosuch:v1'}\n"+
			"  - {name: b, image: 'registry.example.com/charts/db:v1'}\n")
	}
	clitest.WriteFile(r.T, filepath.Join(r.dir, "dead.conf"),
		fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n", releasetest.Host, closedPort))
}

// beforeRelease does what was done before a step: the destination is emptied, and a directory from which the step reads
// archives gets those of the run before.
func beforeRelease(r *replay, s step, _, _ int) {
	if emptied[s.name] {
		r.target.Clear()
	}
	dir := filepath.Join(r.dir, s.workspace())
	if afresh[s.name] {
		if err := os.RemoveAll(dir); err != nil {
			r.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); err == nil || !s.has("--from") || len(r.written) == 0 {
		return
	}
	files := r.written
	if !lastAlone[s.name] {
		files, _ = filepath.Glob(filepath.Join(filepath.Dir(files[0]), "mirror_*.tar"))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	for _, f := range files {
		clitest.CopyFile(r.T, f, filepath.Join(dir, filepath.Base(f)))
	}
}
