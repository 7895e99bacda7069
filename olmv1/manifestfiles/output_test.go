package manifestfiles_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/olmv1/manifestfiles"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

func object(kind, name string) manifests.Object {
	return manifests.Object{APIVersion: "v1", Kind: kind, Name: name, JSON: []byte(`{"kind":"` + kind + `"}`)}
}

// Names of files are safe whatever the names of objects are.
func TestFiles(t *testing.T) {
	files, err := manifestfiles.YAML.Files([]manifests.Phase{{Name: "deploy", Objects: []manifests.Object{
		object("Secret", "a"), object("Secret", "A"), object("Secret", "../../x"),
		object("Secret", strings.Repeat("é", 300)),
		object("", ""), object("Secret", "con.\\nul:"),
	}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if !fs.ValidPath(f.Name) || len(f.Name) > 255 || strings.ToLower(f.Name) != f.Name {
			t.Errorf("%q", f.Name)
		}
		names = append(names, f.Name)
	}
	if want := []string{"secret_a.yaml", "secret_a_2.yaml", "secret_x.yaml", "secret_.yaml", "_.yaml",
		"secret_con.-nul.yaml", "kustomization.yaml"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if text := string(files[len(files)-1].Text); !strings.Contains(text, "- secret_a.yaml\n- secret_a_2.yaml\n") {
		t.Error(text)
	}
}

// What was written is read again as the same objects.
func TestParseDir(t *testing.T) {
	b, err := manifests.Read(os.DirFS("../../testdata/bundles/silicom-sts-operator/0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := b.Manifests(manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []manifestfiles.Format{manifestfiles.YAML, manifestfiles.JSON} {
		files, err := format.Files(manifests.Phases(objects), true)
		dir := filepath.Join(t.TempDir(), "out")
		if err == nil {
			err = manifestfiles.WriteDir(t.Context(), dir, files)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := manifests.ParseDir(os.DirFS(dir))
		if err != nil || len(again) != len(objects) {
			t.Fatalf("%d objects of %d, %v", len(again), len(objects), err)
		}
		for _, o := range again {
			if !slices.ContainsFunc(objects,
				func(x manifests.Object) bool { return string(x.JSON) == string(o.JSON) }) {
				t.Errorf("%s differs", o)
			}
		}
	}
}

// Many files are written without waiting for a lock: each one is in a directory that the writer holds already.
func TestWriteDirOfManyFiles(t *testing.T) {
	var all []manifestfiles.File
	for i := range 60 {
		all = append(all, manifestfiles.File{Name: fmt.Sprintf("%d.yaml", i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := manifestfiles.WriteDir(ctx, filepath.Join(t.TempDir(), "out"), all); err != nil {
		t.Error(err)
	}
}

func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "out")
	one := []manifestfiles.File{{Name: "x/a.yaml", Text: []byte("a")}}
	if err := errors.Join(manifestfiles.WriteDir(t.Context(), dir, one),
		manifestfiles.WriteDir(t.Context(), dir, []manifestfiles.File{{Name: "b.yaml"}})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old files are still there: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, f := range map[string]func() error{
		"canceled": func() error { return manifestfiles.WriteDir(canceled, dir, one) },
		"escaping": func() error {
			return manifestfiles.WriteDir(t.Context(), dir, []manifestfiles.File{{Name: "../a.yaml"}})
		},
		"foreign": func() error {
			if err := os.WriteFile(filepath.Join(dir, "c"), nil, 0o600); err != nil {
				return err
			}
			return manifestfiles.WriteDir(t.Context(), dir, one)
		},
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "b.yaml")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
