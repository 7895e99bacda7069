package render_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render"
)

// The database or files of an index image exist until it is closed and are removed then.
func TestOpenIndex(t *testing.T) {
	r := testregistry.New(t)
	const blob = `{"schema":"x","package":"a","name":"y"}`
	r.AddImage(t, "database", "v1", testregistry.Image{
		Labels: map[string]string{databaseLabel: "/database/index.db"},
		Layers: []map[string]string{{"database/index.db": "old"}, {"database/index.db": "rows"}},
	})
	r.AddImage(t, "catalog", "v1", testregistry.Image{
		Labels: map[string]string{configsLabel: "/configs"},
		Layers: []map[string]string{{"configs/b/gone.json": blob}, {"configs/.wh.b": "", "configs/a/kept.json": blob}},
	})
	r.AddImage(t, "bundle", "v1",
		testregistry.Image{Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "b"}})
	temp := t.TempDir()
	o := render.Options{Images: client(t, r), TempDir: temp}
	for repository, want := range map[string]render.Kind{"database": render.DatabaseImage,
		"catalog": render.CatalogImage} {
		name := r.Host() + "/" + repository
		index, err := o.OpenIndex(t.Context(), name+":v1")
		if err != nil {
			t.Fatal(err)
		}
		if index.Kind != want || len(index.Name) != len(name)+len("@sha256:")+64 {
			t.Errorf("%s: %+v", repository, index)
		}
		if want == render.DatabaseImage {
			if text, err := os.ReadFile(index.Database); err != nil || string(text) != "rows" {
				t.Errorf("database: %q, %v", text, err)
			}
		} else if names, err := fs.Glob(index.Configs, "*/*"); err != nil || len(names) != 1 ||
			names[0] != "a/kept.json" {
			t.Errorf("catalog: %q, %v", names, err)
		}
		if err := index.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := o.OpenIndex(t.Context(), r.Host()+"/bundle:v1"); !errors.Is(err, render.ErrNotAllowed) {
		t.Errorf("a bundle is no index: %v", err)
	}
	if _, err := o.OpenIndex(t.Context(), r.Host()+"/none:v1"); err == nil {
		t.Error("an image that is not there was opened")
	}
	if left, _ := fs.Glob(os.DirFS(temp), "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
