package migrate_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// tree reads the files of a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// recordedTree returns a directory that opm wrote: a tar file, or files that may be compressed.
func recordedTree(t *testing.T, c recorded.Collection, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if !c.Has(name + ".tar") {
		for path := range tree(t, filepath.Join(string(c), name)) {
			path = strings.TrimSuffix(path, ".zst")
			files[path] = string(c.File(t, name+"/"+path))
		}
		return files
	}
	for r := tar.NewReader(bytes.NewReader(c.File(t, name+".tar"))); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		if strings.Count(strings.TrimPrefix(h.Name, "./"), "/") == 1 {
			path = strings.TrimPrefix(h.Name, "./")
		}
		files[path] = string(data)
	}
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for path, data := range want {
		if g, ok := got[path]; !ok {
			t.Errorf("%s is missing", path)
		} else if g != data {
			t.Errorf("%s differs from the recorded answer", path)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is not in the recorded answer", path)
		}
	}
}

// unlike are the databases for which opm's answer is damaged, see the tests of package sqlite.
var unlike = []string{"schema-5", "schema-6", "schema-7", "schema-8"}

func testRecorded(t *testing.T, c recorded.Collection) {
	for _, name := range c.Databases(t) {
		for _, v := range []struct {
			golden string
			format declcfg.Format
			level  edit.Level
		}{
			{"migrate.json.d", declcfg.FormatJSON, edit.LevelNone},
			{"migrate.yaml.d", declcfg.FormatYAML, edit.LevelNone},
			{"migrate.csvmeta.d", declcfg.FormatYAML, edit.LevelCSVMetadata},
		} {
			golden := "golden/" + name + "/" + v.golden
			if _, err := os.Stat(filepath.Join(string(c), golden)); err != nil && !c.Has(golden+".tar") {
				continue
			}
			if strings.Contains(strings.Join(unlike, " "), name) {
				continue
			}
			t.Run(name+"/"+v.golden, func(t *testing.T) {
				t.Parallel()
				out := filepath.Join(t.TempDir(), "out")
				r, err := migrate.Options{
					Format: v.format, Verify: v.format == declcfg.FormatJSON,
					Render: render.Options{Level: v.level, Compat: sqlite.CompatOPM},
				}.Run(context.Background(), c.Database(t, name), out)
				if err != nil {
					t.Fatal(err)
				}
				sameTree(t, tree(t, out), recordedTree(t, c, golden))
				if r.Verification != nil && !r.Verification.Same {
					t.Errorf("not the same: %+v", r.Verification.Differences)
				}
			})
		}
	}
}

func TestRecorded(t *testing.T)    { testRecorded(t, recorded.Part(t)) }
func TestAllRecorded(t *testing.T) { testRecorded(t, recorded.All(t)) }

// Every readable database can be migrated, and plain SQL queries agree with the output.
func TestVerified(t *testing.T) {
	all := recorded.All(t)
	for _, name := range all.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			r, err := migrate.Options{Verify: true, AllowEmpty: true}.Run(context.Background(), all.Database(t, name), out)
			if errors.Is(err, sqlite.ErrDamaged) || err != nil && strings.Contains(err.Error(),
				"unsupported file type") {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Verification.Differences {
				t.Logf("%+v", d)
			}
		})
	}
}
