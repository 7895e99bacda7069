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
	w.Write("other.yaml", strings.ReplaceAll(clitest.MirrorImageSet, "acme/catalog:v1", "acme/catalog:v2"))
	return w
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
		{"mirror run -c imageset.yaml file://media", "stays, and the new segments follow it: carry it, too, unless the other side has what is in it\n"},
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
