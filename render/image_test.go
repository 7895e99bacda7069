package render_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/testregistry"
	"github.com/operator-bindery/bindery/render"
)

const (
	configsLabel  = "operators.operatorframework.io.index.configs.v1"
	databaseLabel = "operators.operatorframework.io.index.database.v1"
)

// client opens images of the registry, also those named after the recorded one.
func client(t *testing.T, r *testregistry.Registry) *images.Client {
	t.Helper()
	yes := true
	c, err := images.NewClient(images.ClientOptions{Temp: t.TempDir(), Registry: images.Registry{
		SkipTLSVerify: &yes, PlainHTTP: true, RegistriesConf: r.RegistriesConf(t, testregistry.RecordedHost),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A catalog, a database and a bundle give the same blobs from a directory or file and from an image, in a registry and
// in a layout, whatever else is in the image.
func TestImageOfEveryKind(t *testing.T) {
	db, err := os.ReadFile("../testdata/db/small.db")
	if err != nil {
		t.Fatal(err)
	}
	dbFile := filepath.Join(t.TempDir(), "small.db")
	if err := os.WriteFile(dbFile, db, 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := t.TempDir()
	blobs := `{"schema":"olm.package","name":"a","defaultChannel":"x"}
{"schema":"olm.channel","package":"a","name":"x","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"example.test/a:1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
`
	if err := os.WriteFile(filepath.Join(catalog, "catalog.json"), []byte(blobs), 0o600); err != nil {
		t.Fatal(err)
	}
	r := testregistry.New(t)
	below := map[string]string{"bin/tool": "program", "configs/old/catalog.json": `{"schema":"old"}`, "database/index.db": "old"}
	for _, c := range []struct {
		name, path string
		image      testregistry.Image
	}{
		{"database", dbFile, testregistry.Image{
			Labels: map[string]string{databaseLabel: "/database/index.db", configsLabel: "/configs"},
			Layers: []map[string]string{below, {"database/index.db": string(db)}},
		}},
		{"catalog", catalog, testregistry.Image{
			Labels: map[string]string{configsLabel: "/configs"},
			Layers: []map[string]string{below, {"configs/.wh.old": ""}, {"configs/a/catalog.json": blobs}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := text(t, declcfg.FormatJSON, render.Options{}, c.path)
			if err != nil {
				t.Fatal(err)
			}
			r.AddImage(t, "index/"+c.name, "v1", c.image)
			layout := filepath.Join(t.TempDir(), "layout")
			c.image.WriteLayout(t, layout, "v1")
			temp := t.TempDir()
			o := render.Options{Images: client(t, r), TempDir: temp}
			for _, ref := range []string{r.Host() + "/index/" + c.name + ":v1", "docker://" + r.Host() + "/index/" + c.name + ":v1", "oci:" + layout + ":v1"} {
				got, err := text(t, declcfg.FormatJSON, o, ref)
				if err != nil {
					t.Errorf("%s: %v", ref, err)
				} else if got != want {
					t.Errorf("%s is rendered in another way than %s", ref, c.path)
				}
			}
			if left, _ := fs.Glob(os.DirFS(temp), "*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestKindsThatAreNotAllowed(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "b", "v1", testregistry.Image{Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "b"}})
	r.AddImage(t, "none", "v1", testregistry.Image{})
	r.AddImage(t, "other", "v1", testregistry.Image{Labels: map[string]string{"maintainer": "x"}})
	r.AddImage(t, "out", "v1", testregistry.Image{Labels: map[string]string{configsLabel: "/../../etc"}})
	o := render.Options{Images: client(t, r), Allow: []render.Kind{render.CatalogImage, render.CatalogDirectory}}
	for repository, want := range map[string]string{
		"b":     "cannot render bundle image: not allowed",
		"none":  "image has no labels",
		"other": `found labels "maintainer"`,
		"out":   "is not a path in the image",
	} {
		_, err := text(t, declcfg.FormatJSON, o, r.Host()+"/"+repository+":v1")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", repository, err)
		}
		if repository == "b" && !errors.Is(err, render.ErrNotAllowed) {
			t.Errorf("%v is not ErrNotAllowed", err)
		}
	}
	dir := t.TempDir()
	for _, sub := range []string{"manifests", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := text(t, declcfg.FormatJSON, o, dir); !errors.Is(err, render.ErrNotAllowed) {
		t.Errorf("%v", err)
	}
}
