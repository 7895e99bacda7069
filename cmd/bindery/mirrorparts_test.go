package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// mirrorParts writes the image set of the examples to a directory, in three parts, and returns how commands are run
// there.
func mirrorParts(t *testing.T, source *testregistry.Registry) (dir string, mirror func(args ...string) result) {
	t.Helper()
	dir = t.TempDir()
	conf := source.RegistriesConf(t, mirrortest.Host)
	writeFile(t, filepath.Join(dir, "imageset.yaml"), mirrorImageSet)
	mirror = func(args ...string) result {
		t.Helper()
		return runProgram(t, dir, "bindery", append(append([]string{"mirror"}, args...), "--registries-conf", conf,
			"--use-http", "--no-cache")...)
	}
	for _, i := range []string{"1", "2", "3"} {
		if got := mirror("run", "-c", "imageset.yaml", "--shard", i+"/3", "file://parts/"+i); got.status != 0 {
			t.Fatal(got.stderr)
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
	publish := func(more ...string) result {
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
				".mirror_000001.tar.partial"))
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
			if got := publish(); got.status != 1 || !strings.Contains(got.stderr, c.want) {
				t.Errorf("%+v", got)
			}
			if exists(t, filepath.Join(parts, "catalogs", "mirror_000001.tar")) {
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
	text := strings.Replace(mirrorImageSet, "    - name: beta-op\n", "", 1)
	writeFile(t, filepath.Join(dir, "imageset.yaml"), text)
	if got := publish(); got.status != 1 || !strings.Contains(got.stderr, "is of another image set") {
		t.Errorf("another image set: %+v", got)
	}
	writeFile(t, filepath.Join(dir, "imageset.yaml"), mirrorImageSet)
	if got := publish("--since", "2024-01-01"); got.status != 1 || !strings.Contains(got.stderr, "--since") {
		t.Errorf("--since: %+v", got)
	}
	if got := mirror("run", "-c", "imageset.yaml", "--shard", "1/3", "file://parts/1", "--archive-format",
		"oc-mirror"); got.status != 1 || !strings.Contains(got.stderr, "oc-mirror reads no archives of several runs") {
		t.Errorf("the form of oc-mirror: %+v", got)
	}
	if got := mirror("publish", "-c", "imageset.yaml", "file://parts/catalogs"); got.status != 1 ||
		!strings.Contains(got.stderr, "--from DIR is needed") {
		t.Errorf("without --from: %+v", got)
	}
	if got := publish(); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if got := mirror("verify", "file://parts"); got.status != 0 {
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
	writeFile(t, filepath.Join(dir, "imageset.yaml"), mirrorImageSet)
	run := func(want int, args ...string) result {
		t.Helper()
		got := runProgram(t, dir, "bindery", append(append([]string{"mirror"}, args...), "-c", "imageset.yaml",
			"--registries-conf", conf, "--use-http", "--no-cache")...)
		if got.status != want {
			t.Fatalf("%q: %+v", args, got)
		}
		return got
	}
	shard := func(i string) []string { return []string{"run", "--shard", i + "/2", "file://parts/" + i} }
	lacking := ""
	for _, i := range []string{"1", "2"} {
		got := runProgram(t, dir, "bindery", append(append([]string{"mirror"}, shard(i)...), "-c", "imageset.yaml",
			"--registries-conf", conf, "--use-http", "--no-cache")...)
		switch got.status {
		case 0:
		case 4:
			lacking += i
		default:
			t.Fatal(got.stderr)
		}
	}
	if len(lacking) != 1 {
		t.Fatalf("parts %q lack the image", lacking)
	}
	publish := []string{"publish", "--from", "parts", "file://parts/catalogs"}
	if got := run(4, publish...); !strings.Contains(got.stderr, "is taken out") {
		t.Error(got.stderr)
	}
	whole := map[string]string{"1": "2", "2": "1"}[lacking]
	before := snapshot(t, filepath.Join(dir, "parts", whole))
	source.Forget()
	if got := run(0, shard(whole)...); !strings.Contains(got.stderr, "the archive of this part is there") {
		t.Error(got.stderr)
	}
	if source.Count("GET /v2/acme/common/blobs/") > 0 || !sameSegments(before,
		snapshot(t, filepath.Join(dir, "parts", whole))) {
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
	sameRegistry(t, target, undivided)
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
