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

func newMirrorWorld(t *testing.T) *clitest.MirrorWorld {
	source, target := mirrortest.Source(t), testregistry.New(t)
	target.Separate(true)
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host), Target: "docker://" + target.Host() + "/olm", Registry: target}
	w.Write("imageset.yaml", clitest.MirrorImageSet)
	w.Write("delete.yaml", clitest.DeleteImageSet)
	w.Write("missing.yaml", strings.ReplaceAll(clitest.MirrorImageSet, "extra/tool:v1", "extra/tool:none"))
	w.Write("package.yaml", strings.ReplaceAll(clitest.MirrorImageSet, "alpha-op", "alfa-op"))
	w.Write("channel.yaml", strings.ReplaceAll(clitest.MirrorImageSet, "- name: alpha-op",
		"- {name: alpha-op, channels: [{name: stabel}]}"))
	w.Write("other.yaml", strings.ReplaceAll(clitest.MirrorImageSet, "acme/catalog:v1", "acme/catalog:v2"))
	w.Write("empty.yaml", "kind: ImageSetConfiguration\nmirror: {}\n")
	return w
}

// Wrong input of mirrors: the message names the file or flag and the way out, once.
func TestMirrorMistakes(t *testing.T) {
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{"mirror run -c delete.yaml --workspace w TARGET", 1, `hint: "mirror delete" takes this kind of configuration`},
		{"mirror delete -c imageset.yaml TARGET", 1, "delete wants kind: DeleteImageSetConfiguration"},
		{"oc-mirror -c none.yaml --src-creds name:secret file://media", 1,
			"--src-creds is not used: credentials are read from --authfile"},
		{"mirror delete -c none.yaml TARGET", 1, "hint: -c FILE names a DeleteImageSetConfiguration\n"},
		{"mirror run -c empty.yaml --workspace w TARGET", 1,
			"error: no images to copy: the image set names no operators and no additional images\n"},
		{"mirror run -c channel.yaml --workspace w TARGET", 1, `the package has no channel "stabel": perhaps stable)`},
		{"mirror run -c imageset.yaml --workspace w docker://127.0.0.1:1 --retries 0", 1,
			"error: registry 127.0.0.1:1: Get "},
		{"mirror run -c imageset.yaml --workspace w TARGET:v1", 1, "error: destination "},
		{"mirror run -c imageset.yaml --workspace w 127.0.0.1:1/olm", 1,
			`hint: did you mean "docker://127.0.0.1:1/olm"?`},
		{"mirror run -c imageset.yaml media", 1, `hint: did you mean "file://media"?`},
		{"mirror verify -c imageset.yaml media", 1, `hint: did you mean "file://media"?`},
		{"mirror inventory mirror.example.com", 1, `hint: did you mean "docker://mirror.example.com"?`},
		{"mirror run -c imageset.yaml --from nowhere TARGET", 1, "error: --from: open nowhere: no such file"},
		{"mirror verify -c imageset.yaml docker://127.0.0.1:1 --retries 0", 1, "error: registry 127.0.0.1:1: Get "},
		{"mirror delete -c delete.yaml docker://127.0.0.1:1 --retries 0", 1, "error: registry 127.0.0.1:1: Get "},
		{"mirror run -c imageset.yaml --workspace w --server none.bin TARGET", 1,
			"error: --server: open none.bin: no such file or directory\n"},
		{"mirror run -c imageset.yaml --workspace imageset.yaml TARGET", 1, "error: workspace: lstat imageset.yaml/working-dir: not a directory\n"},
		{"mirror run -c imageset.yaml --against delete.yaml file://media", 1, "error: --against delete.yaml: "},
		{"mirror run -c imageset.yaml --against delete.yaml file://media", 1,
			`hint: "mirror inventory" writes the file`},
		{"mirror run -c missing.yaml --workspace w TARGET", 4,
			"hint: check the repository and the tag; a private registry may also answer so to users without permission; " +
				"the same command again copies only what is missing\n"},
		{"mirror run -c missing.yaml --workspace w TARGET", 4,
			"\nnot copied: docker://registry.example.com/extra/tool:none: "},
		{"mirror run -c missing.yaml --workspace w TARGET --dry-run", 4,
			"warning: registry.example.com/extra/tool:none cannot be copied\n"},
		{"mirror publish -c imageset.yaml --workspace w TARGET", 4,
			`hint: "mirror run" copies the images; then publish again`},
		{"mirror verify TARGET", 1, "error: no catalog to verify\nhint: -c FILE is "},
		{"mirror verify TARGET -c imageset.yaml", 1, "1 catalog and 1 image are wrong\n"},
		{"mirror delete --list imageset.yaml TARGET", 1, "hint: the list is the file that the step before wrote"},
		{"oc-mirror", 1, "usage: oc-mirror [flags] DESTINATION\n"},
		{"oc-mirror delete TARGET", 1, "usage: oc-mirror delete [flags] DESTINATION\n"},
		{"oc-mirror list operators", 1, "usage: oc-mirror list operators [flags]\n"},
	} {
		t.Run(c.line, func(t *testing.T) {
			w := newMirrorWorld(t)
			r := w.Run(c.line)
			if _, err := os.Stat(filepath.Join(w.Dir, "nowhere")); err == nil {
				t.Error("a misspelled --from made a directory")
			}
			if r.Status != c.status || !strings.Contains(r.Stderr+r.Stdout, c.want) {
				t.Errorf("status %d\n%s%s\nwanted %d and %q", r.Status, r.Stdout, r.Stderr, c.status, c.want)
			}
		})
	}
}

// What nothing is kept of is said once.
func TestMirrorSaysErrorsOnce(t *testing.T) {
	w := newMirrorWorld(t)
	w.Write("one.yaml",
		"kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: registry.example.com/acme/catalog:v1\n"+
			"    packages: [{name: alfa-op}]\n")
	r := w.Run("mirror run -c one.yaml --workspace w TARGET")
	if n := strings.Count(r.Stderr, "nothing of the catalog is kept"); r.Status != 1 || n != 1 {
		t.Errorf("status %d, %d times\n%s", r.Status, n, r.Stderr)
	}
	if !strings.Contains(r.Stderr, "perhaps alpha-op") {
		t.Errorf("the misspelled name is not told\n%s", r.Stderr)
	}
}

// The last lines of a run say what became of the catalogs, what is left out and what comes next.
func TestMirrorSummaries(t *testing.T) {
	w := newMirrorWorld(t)
	for _, c := range []struct{ line, want string }{
		{"mirror run -c imageset.yaml --workspace w TARGET --dry-run", "nothing is copied in a dry run\n"},
		{"mirror run -c imageset.yaml --workspace w TARGET",
			"/olm/acme/catalog:v1: published, 2 packages, 2 bundles\n8 images: 8 copied, 0 there before; sent "},
		{"mirror run -c imageset.yaml --workspace w TARGET",
			"/olm/acme/catalog:v1: unchanged, 2 packages, 2 bundles\n"},
		{"mirror run -c imageset.yaml --workspace w TARGET",
			"\nnext: tell the cluster, with oc apply -f w/working-dir/cluster-resources\n"},
		{"mirror run -c imageset.yaml --workspace w TARGET --shard 1/2", `: left to "mirror publish"`},
		{"mirror publish -c imageset.yaml --workspace w TARGET --dry-run",
			"8 images: 8 are there; nothing is published"},
		{"mirror resources -c imageset.yaml --workspace w --to res TARGET --dry-run", "res/cs-catalog-v1.yaml\n"},
		{"mirror verify TARGET -c imageset.yaml", "1 catalog, 9 images, "},
		{"mirror delete -c delete.yaml --workspace w --list list.yaml TARGET", "next: look at the list, and run: "},
		{"mirror delete --list list.yaml TARGET --dry-run", "nothing is deleted in a dry run\n"},
		{"mirror delete --list list.yaml TARGET --dry-run", "/olm/acme/alpha-op-bundle\t"},
		{"mirror verify TARGET -c imageset.yaml", "1 catalog, 9 images, "},
		{"mirror run -c imageset.yaml file://media", "packed the catalog acme/catalog:v1\n"},
		{"mirror run -c imageset.yaml --from media TARGET/air", "reading the catalog acme/catalog:v1 of the archive\n"},
		{"mirror run -c other.yaml --from media TARGET/other",
			"the archive has no catalog registry.example.com/acme/catalog:v2 (perhaps registry.example.com/acme/catalog:v1)\n"},
		{"mirror verify file://media", "catalog acme/catalog:v1: 2 packages, 2 bundles\n"},
		{"take away", ""},
		{"mirror run -c imageset.yaml file://media", "leaving out what earlier archives carried, up to that of "},
		{"mirror verify file://media", ": all is there but "},
		{"mirror run -c imageset.yaml --from media TARGET/other",
			"hint: copy the earlier archives first, or write one against an inventory"},
		{"mirror run -c imageset.yaml file://media", "stays, and the new segments follow it: carry all of them\n"},
	} {
		if c.line == "take away" { // the archive was carried to the other side
			if err := os.Remove(filepath.Join(w.Dir, "media", "mirror_000001.tar")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		r := w.Run(c.line)
		if !strings.Contains(r.Stdout+r.Stderr, c.want) {
			t.Errorf("%s: status %d\n%s%s\nwanted %q", c.line, r.Status, r.Stdout, r.Stderr, c.want)
		}
		if strings.Contains(r.Stderr, ".bindery-stage") {
			t.Errorf("%s: the message names a temporary directory\n%s", c.line, r.Stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "res")); err == nil {
		t.Error("a dry run wrote resources")
	}
}

// A registry that refuses to say what it has is no registry without it: nothing counts as deleted, absent or wrong.
func TestMirrorOfUnknownUser(t *testing.T) {
	source, target := mirrortest.Source(t), testregistry.New(t)
	target.Separate(true)
	dir := t.TempDir()
	w := &clitest.MirrorWorld{T: t, Dir: dir, Conf: source.RegistriesConf(t, mirrortest.Host), Target: "docker://" + target.Host() + "/olm", Registry: target}
	w.Write("imageset.yaml", clitest.MirrorImageSet)
	w.Write("delete.yaml", clitest.DeleteImageSet)
	for _, line := range []string{"mirror run -c imageset.yaml --workspace w TARGET",
		"mirror delete -c delete.yaml --workspace w --list list.yaml TARGET"} {
		if r := w.Run(line); r.Status != 0 {
			t.Fatalf("%s: status %d\n%s", line, r.Status, r.Stderr)
		}
	}
	target.Interfere(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	for _, line := range []string{"mirror verify TARGET -c imageset.yaml", "mirror delete --list list.yaml TARGET",
		"mirror inventory TARGET --to inventory", "mirror delete -c delete.yaml --workspace w TARGET"} {
		r := w.Run(line)
		if r.Status != 1 || !strings.Contains(r.Stderr, "401") || !strings.Contains(r.Stderr, "provide credentials") {
			t.Errorf("%s: status %d\n%s%s", line, r.Status, r.Stdout, r.Stderr)
		}
	}
}
