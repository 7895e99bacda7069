//go:build hostile

package hostile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg/growtest"
)

// small is the sample catalog without the package that is as big as a hundred others.
type small struct{ fs.FS }

func (s small) Open(name string) (fs.File, error) {
	if name == "shipwright-operator" {
		return nil, fs.ErrNotExist
	}
	return s.FS.Open(name)
}

func (s small) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	var out []fs.DirEntry
	for _, e := range entries {
		if e.Name() != "shipwright-operator" {
			out = append(out, e)
		}
	}
	return out, err
}

// A catalog of very many packages stays within the layer limit; one edit gives at most two new layers; time and memory
// grow linearly.
func TestManyPackages(t *testing.T) {
	from := small{os.DirFS("../../testdata/fbc/mini")}
	build := func(b *box) (map[string]bool, outcome) {
		t.Helper()
		o := b.accepted("-q", "build", "catalog", "cat", "-t", "example.com/foo:v1", "--server", "none", "--cache",
			"none", "--compression", "zstd", "--dry-run", "--metadata-file", "-")
		var image struct {
			Layers []struct{ Digest string }
			Totals struct{ Packages int }
		}
		check(t, json.Unmarshal([]byte(o.stdout), &image))
		out := map[string]bool{}
		for _, l := range image.Layers {
			out[l.Digest] = true
		}
		if len(out) > 100 {
			t.Errorf("%d layers", len(out))
		}
		t.Logf("%d packages in %d layers: %s, %d MB", image.Totals.Packages, len(out), o.took.Round(time.Millisecond),
			o.memory>>20)
		return out, o
	}
	boxOf := func(packages int) *box {
		b := newBox(t)
		check(t, os.Mkdir(filepath.Join(b.dir, "cat"), 0o755))
		check(t, growtest.Catalog(filepath.Join(b.dir, "cat"), packages, 0, from))
		return b
	}
	_, quarter := build(boxOf(300))
	b := boxOf(1200)
	before, whole := build(b)
	if whole.took > 8*quarter.took || whole.memory > 4*quarter.memory {
		t.Errorf("four times the packages take %s and %d MB in place of %s and %d MB", whole.took, whole.memory>>20,
			quarter.took, quarter.memory>>20)
	}
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 4 {
		dirs := names(t, filepath.Join(b.dir, "cat"))
		pkg := dirs[r.IntN(len(dirs))]
		what := []string{"removed", "added", "grown", "changed"}[i]
		file := filepath.Join(b.dir, "cat", pkg, "catalog.yaml")
		text, err := os.ReadFile(file)
		check(t, err)
		switch what {
		case "removed":
			check(t, os.RemoveAll(filepath.Dir(file)))
		case "added":
			b.write("cat/foo/catalog.yaml", healthy)
		case "grown":
			check(t, os.WriteFile(file,
				append(text, repeat(20_000, func(i int) string { return fmt.Sprintf("# %d\n", i) })...), 0o644))
		case "changed":
			check(t, os.WriteFile(file, append([]byte("# another\n"), text...), 0o644))
		}
		after, _ := build(b)
		n := 0
		for l := range after {
			if !before[l] {
				n++
			}
		}
		if n == 0 || n > 2 {
			t.Errorf("package %s %s: %d new layers", pkg, what, n)
		}
		before = after
	}
}
