package ocmirror_test

import (
	"archive/tar"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// archiveFiles returns the files of an archive below a directory of its workspace, with their text.
func (r *replay) archiveFiles(dir string) map[string]string {
	r.Helper()
	out := map[string]string{}
	for name := range r.tree("ws", "mirror_*.tar") {
		f, err := os.Open(name)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		for t := tar.NewReader(f); ; {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.Fatal(err)
			}
			if below, ok := strings.CutPrefix(h.Name, dir); ok {
				text, err := io.ReadAll(t)
				if err != nil {
					r.Fatal(err)
				}
				out[below] = string(text)
			}
		}
	}
	return out
}

// An archive has of each catalog what oc-mirror looks for before it filters one again, or asks the source's registry: the
// files are those of its own archive, with a filter, and without one those of the catalog.
func TestArchivesHaveFilteredCatalogs(t *testing.T) {
	const at = "working-dir/operator-catalogs/catalog/"
	r := newReplay(t, operators, "02-m2d-d2m")
	s := operators.steps(t)["02-m2d-d2m"][0]
	if got := r.execute(s, nil); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	var want []string
	for line := range strings.Lines(string(operators.runs(t)[s.name+".archive.txt"])) {
		name, _, _ := strings.Cut(line, " ")
		if rest, ok := strings.CutPrefix(name, at); ok && strings.Contains(rest, "/filtered-catalogs/") &&
			!strings.Contains(rest, "/filtered-catalog-image/") {
			want = append(want, rest)
		}
	}
	got := r.archiveFiles(at)
	for _, name := range want {
		if strings.TrimSpace(got[name]) == "" {
			t.Errorf("the archive has no %s, as oc-mirror's has", name)
		}
	}
	if len(want) < 3 || len(got) != len(want) {
		t.Errorf("%d files instead of %d", len(got), len(want))
	}
	if alpha := got[want[slices.IndexFunc(want, func(n string) bool { return strings.HasSuffix(n, "alpha-op/catalog.json") })]]; !strings.Contains(alpha, `"schema": "olm.package"`) ||
		strings.Count(alpha, `"schema": "olm.bundle"`) != 1 {
		t.Errorf("the filtered catalog:\n%s", alpha)
	}

	whole := newReplay(t, operators, "04-m2m-full")
	if got := whole.execute(step{args: []string{"-c", "$W/isc.yaml", "file://$W/ws", "--v2", "--src-tls-verify=false"}}, nil); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	files := whole.archiveFiles(at)
	var digest, hash string
	packages := 0
	for name, text := range files {
		switch {
		case path.Base(name) == "digest":
			digest, hash = text, path.Base(path.Dir(name))
		case path.Base(name) == "catalog.json":
			packages++
		}
	}
	links := whole.archiveFiles("docker/registry/v2/repositories/acme/catalog/_manifests/tags/" + hash + "/current/")
	if packages != 3 || links["link"] != "sha256:"+digest {
		t.Errorf("%d packages of a whole catalog, and its tag %s is %q instead of %q", packages, hash, links["link"], digest)
	}
}

// The pinned configurations are in the archive and come to the workspace of the other side, also without oc-mirror's form.
func TestPinnedConfigurationsTravel(t *testing.T) {
	for _, form := range []string{"oc-mirror", "oci"} {
		t.Run(form, func(t *testing.T) {
			r := newReplay(t, operators, "02-m2d-d2m")
			var got clitest.Result
			if form == "oci" {
				got = clitest.Finish(t, r.bindery("mirror", "run", "-c", filepath.Join(r.dir, "isc.yaml"), "--use-http",
					"file://"+filepath.Join(r.dir, "ws")))
			} else {
				got = r.execute(operators.steps(t)[r.scenario][0], nil)
			}
			if got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			want := map[string]string{}
			for name, text := range r.tree("ws", "*sc_pinned_*.yaml") {
				want[filepath.Base(name)] = text
			}
			if len(want) != 2 {
				t.Fatalf("%d pinned configurations", len(want))
			}
			if err := os.RemoveAll(filepath.Join(r.dir, "ws", "working-dir")); err != nil {
				t.Fatal(err)
			}
			r.source.Clear()
			if form == "oci" {
				got = clitest.Finish(t, r.bindery("mirror", "run", "-c", filepath.Join(r.dir, "isc.yaml"), "--from",
					"file://"+filepath.Join(r.dir, "ws"), "--workspace", filepath.Join(r.dir, "far"), "--use-http", "docker://"+r.target.Host()+"/m"))
			} else {
				got = r.execute(step{args: []string{"-c", "$W/isc.yaml", "--from", "file://$W/ws", "docker://127.0.0.1:5802/m", "--v2",
					"--dest-tls-verify=false"}}, nil)
			}
			if got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			there := 0
			for _, dir := range []string{"ws", "far"} {
				for name, text := range r.tree(dir, "*sc_pinned_*.yaml") {
					if there++; want[filepath.Base(name)] != text {
						t.Errorf("%s: other than in the archive", name)
					}
				}
			}
			if there != 2 {
				t.Errorf("%d pinned configurations at the other side", there)
			}
			if form == "oci" {
				return
			}
			for name := range r.tree("ws", "isc_pinned_*.yaml") {
				clitest.WriteFile(t, name, "edited")
			}
			got = r.execute(step{args: []string{"-c", "$W/isc.yaml", "--from", "file://$W/ws", "docker://127.0.0.1:5802/m", "--v2",
				"--dest-tls-verify=false"}}, nil)
			for name, text := range r.tree("ws", "isc_pinned_*.yaml") {
				if text != "edited" || !strings.Contains(got.Stderr, filepath.Base(name)+": it is in the workspace with other content") {
					t.Errorf("an edited file: %q, %s", text, got.Stderr)
				}
			}
		})
	}
}

// bindery is a command of this program under its own name, in the surroundings of the scenario.
func (r *replay) bindery(args ...string) *exec.Cmd {
	cmd := clitest.Command(r.dir, "bindery", args...)
	cmd.Env = append(cmd.Env, r.env...)
	return cmd
}

// A stored signature that is not good is said, where a good one is fetched in its place.
func TestDamagedSignatureIsSaid(t *testing.T) {
	r := signatureRun{newReplay(t, releases, "r01-m2m-heads")}
	to := []string{"--workspace", "file://$W/ws", "docker://127.0.0.1:46502/m"}
	if got := r.mirror(12, nil, to...); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	stored := r.tree("ws/working-dir/signatures", "4.17.12*")
	for name := range stored {
		clitest.WriteFile(t, name, "damaged")
	}
	got := r.mirror(12, nil, to...)
	if got.Status != 0 || len(stored) != 1 || !strings.Contains(got.Stderr, "warning: ") ||
		!strings.Contains(got.Stderr, "a signature is not used, as another one is good: signatures/4.17.12-x86_64-sha256-") {
		t.Errorf("%d signatures, %+v", len(stored), got)
	}
	if again := r.mirror(12, nil, to...); strings.Contains(again.Stderr, "not used") {
		t.Errorf("it was written again: %+v", again)
	}
}

// What "list releases" says of channels that are not stable ones, of two architectures of which one fails, of a misspelt
// channel, and of a server that does not answer.
func TestListReleases(t *testing.T) {
	r := newReplay(t, releases, "r22-list-releases")
	list := func(args ...string) clitest.Result {
		t.Helper()
		return r.execute(step{args: append([]string{"list", "releases", "--v2"}, args...)}, []string{"UPDATE_URL_OVERRIDE=" + r.world.GraphURL})
	}
	if got := list("--channel", "candidate-4.17"); got.Status != 0 || !strings.HasPrefix(got.Stdout, "Channel: candidate-4.17\n") {
		t.Errorf("not a stable channel: %+v", got)
	}
	if got := list("--channel", "stabel-4.16"); got.Status != 1 || !strings.Contains(got.Stderr, `did you mean "stable-4.16"?`) {
		t.Errorf("misspelt: %+v", got)
	}
	r.world.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Query().Get("arch") == "arm64" {
			w.WriteHeader(http.StatusTeapot)
			return true
		}
		return false
	})
	got := list("--channel", "stable-4.16", "--filter-by-archs", "amd64,arm64")
	if got.Status != 1 || !strings.Contains(got.Stdout, "Architecture: amd64\n4.15.3\n") || strings.Contains(got.Stdout, "arm64") ||
		!strings.Contains(got.Stderr, "arm64") || !strings.Contains(got.Stderr, "418") || strings.Contains(got.Stderr, "registry") {
		t.Errorf("one architecture fails: %+v", got)
	}
	r.world.GraphURL = "http://" + closedPort + "/graph"
	if got := list("--channel", "stable-4.16"); got.Status != 1 || strings.Contains(got.Stderr, "registry") ||
		!strings.Contains(got.Stderr, "nothing listens there: check host and port, and that the server runs") {
		t.Errorf("no server: %+v", got)
	}
}
