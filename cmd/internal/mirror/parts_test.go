package mirror_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// mirrorParts writes the image set of the examples to a directory, in three parts, and returns how commands are run
// there.
func mirrorParts(t *testing.T, source *testregistry.Registry) (dir string, mirror func(args ...string) clitest.Result) {
	t.Helper()
	dir = t.TempDir()
	conf := source.RegistriesConf(t, mirrortest.Host)
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), clitest.MirrorImageSet)
	mirror = func(args ...string) clitest.Result {
		t.Helper()
		return clitest.RunProgram(t, dir, "bindery", append(append([]string{"mirror"}, args...), "--registries-conf", conf,
			"--use-http", "--no-cache")...)
	}
	for _, i := range []string{"1", "2", "3"} {
		if got := mirror("run", "-c", "imageset.yaml", "--shard", i+"/3", "file://parts/"+i); got.Status != 0 {
			t.Fatal(got.Stderr)
		}
	}
	return dir, mirror
}

// An archive of catalogs is written if the archives of all parts are there, are of this image set, and have what the
// catalogs name.
func TestMirrorPublishParts(t *testing.T) {
	source := mirrortest.Source(t)
	dir, mirror := mirrorParts(t, source)
	parts := filepath.Join(dir, "parts")
	publish := func(more ...string) clitest.Result {
		t.Helper()
		return mirror(append([]string{"publish", "-c", "imageset.yaml", "--from", "parts", "file://parts/catalogs"},
			more...)...)
	}
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"a part is missing": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "2")) },
			"part 2/3 is missing"},
		"a part is unfinished": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "2", "mirror_000001.tar"), filepath.Join(dir, "2",
				".mirror_000001.partial"))
		}, "part 2/3 is missing"},
		"nothing is divided": {func(dir string) error {
			return os.RemoveAll(dir)
		}, "parts"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := filepath.Join(dir, "kept")
			if err := os.CopyFS(kept, os.DirFS(parts)); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(parts); err != nil {
				t.Fatal(err)
			}
			if got := publish(); got.Status != 1 || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("%+v", got)
			}
			if clitest.Exists(t, filepath.Join(parts, "catalogs", "mirror_000001.tar")) {
				t.Error("an archive was written")
			}
			if err := os.RemoveAll(parts); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(kept, parts); err != nil {
				t.Fatal(err)
			}
		})
	}
	text := strings.Replace(clitest.MirrorImageSet, "    - name: beta-op\n", "", 1)
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), text)
	if got := publish(); got.Status != 1 || !strings.Contains(got.Stderr, "is of another image set") {
		t.Errorf("another image set: %+v", got)
	}
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), clitest.MirrorImageSet)
	if got := publish("--since", "2024-01-01"); got.Status != 1 || !strings.Contains(got.Stderr, "--since") {
		t.Errorf("--since: %+v", got)
	}
	if got := mirror("run", "-c", "imageset.yaml", "--shard", "1/3", "file://parts/1", "--archive-format",
		"oc-mirror"); got.Status != 1 || !strings.Contains(got.Stderr, "oc-mirror reads no archives of several runs") {
		t.Errorf("the form of oc-mirror: %+v", got)
	}
	if got := mirror("publish", "-c", "imageset.yaml", "file://parts/catalogs"); got.Status != 1 ||
		!strings.Contains(got.Stderr, "--from DIR is needed") {
		t.Errorf("without --from: %+v", got)
	}
	if got := publish(); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	if got := mirror("verify", "file://parts"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}

// A part whose archive is complete is not written again: it would leave nothing out, but fetch everything. One that
// lacks an image is, and the catalogs are then whole.
func TestMirrorPartsAgain(t *testing.T) {
	source := mirrortest.Source(t)
	broken := true
	source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if broken && strings.HasPrefix(q.URL.Path, "/v2/acme/beta-app/manifests/") {
			http.NotFound(w, q)
			return true
		}
		return false
	})
	dir := t.TempDir()
	conf := source.RegistriesConf(t, mirrortest.Host)
	clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), clitest.MirrorImageSet)
	run := func(want int, args ...string) clitest.Result {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", append(append([]string{"mirror"}, args...), "-c", "imageset.yaml",
			"--registries-conf", conf, "--use-http", "--no-cache")...)
		if got.Status != want {
			t.Fatalf("%q: %+v", args, got)
		}
		return got
	}
	shard := func(i string) []string { return []string{"run", "--shard", i + "/2", "file://parts/" + i} }
	lacking := ""
	for _, i := range []string{"1", "2"} {
		got := clitest.RunProgram(t, dir, "bindery", append(append([]string{"mirror"}, shard(i)...), "-c", "imageset.yaml",
			"--registries-conf", conf, "--use-http", "--no-cache")...)
		switch got.Status {
		case 0:
		case 4:
			lacking += i
		default:
			t.Fatal(got.Stderr)
		}
	}
	if len(lacking) != 1 {
		t.Fatalf("parts %q lack the image", lacking)
	}
	publish := []string{"publish", "--from", "parts", "file://parts/catalogs"}
	if got := run(4, publish...); !strings.Contains(got.Stderr, "is taken out") {
		t.Error(got.Stderr)
	}
	whole := map[string]string{"1": "2", "2": "1"}[lacking]
	before := clitest.Snapshot(t, filepath.Join(dir, "parts", whole))
	source.Forget()
	if got := run(0, shard(whole)...); !strings.Contains(got.Stderr, "the archive of this part is there") {
		t.Error(got.Stderr)
	}
	if source.Count("GET /v2/acme/common/blobs/") > 0 || !sameSegments(before,
		clitest.Snapshot(t, filepath.Join(dir, "parts", whole))) {
		t.Error("a complete part is written again")
	}
	broken = false
	run(0, shard(lacking)...) // divides the images differently, as it can read one more
	run(0, publish...)
	target := testregistry.New(t)
	target.Separate(true)
	run(0, "run", "--from", "parts", "docker://"+target.Host()+"/olm")
	undivided := testregistry.New(t)
	undivided.Separate(true)
	run(0, "run", "--workspace", "whole", "docker://"+undivided.Host()+"/olm")
	clitest.SameRegistry(t, target, undivided)
}

// sameSegments compares the lines of snapshots that are about segments.
func sameSegments(a, b string) bool {
	of := func(text string) (out string) {
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "mirror_0") {
				out += line + "\n"
			}
		}
		return out
	}
	return of(a) != "" && of(a) == of(b)
}
