package opmcache

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/layers"
)

// packagesOf are the packages of a directory that has a directory for each.
func packagesOf(t testing.TB, dir string) []Package {
	t.Helper()
	byName := map[string]*Package{}
	var names []string
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		e, err := layers.File(configsDir+"/"+name, fsys, name)
		if err != nil {
			return err
		}
		pkg, _, _ := strings.Cut(name, "/")
		if byName[pkg] == nil {
			byName[pkg] = &Package{Name: pkg}
			names = append(names, pkg)
		}
		byName[pkg].Files = append(byName[pkg].Files, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []Package
	for _, n := range names {
		out = append(out, *byName[n])
	}
	return out
}

// contents reads entries; directories have none.
func contents(t testing.TB, es []layers.Entry) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, e := range es {
		if e.Kind == layers.KindDir {
			continue
		}
		if e.Kind != layers.KindFile {
			t.Fatalf("%s is of kind %v", e.Name, e.Kind)
		}
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || int64(len(text)) != e.Size {
			t.Fatalf("%s has %d bytes, not %d: %v", e.Name, len(text), e.Size, err)
		}
		out[e.Name] = text
	}
	return out
}

func TestRecordedDigest(t *testing.T) {
	oracle := os.Getenv("ORACLE")
	es, err := PogrebTop(t.Context(), t.TempDir(), packagesOf(t, filepath.Join(oracle, "fbc/mini")))
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, es)
	total := 0
	for n, f := range files {
		t.Log(n, len(f))
		total += len(f)
	}
	t.Logf("%s %d", files["tmp/cache/pogreb.v1/digest"], total)
}
