package render_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render"
)

// twoPackages are a valid package, and one with what a repair mends: its default channel, which is its only one.
const twoPackages = `{"schema":"olm.package","name":"a","defaultChannel":"x"}
{"schema":"olm.channel","package":"a","name":"x","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"example.test/a:1","properties":[` +
	`{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
{"schema":"olm.package","name":"b"}
{"schema":"olm.channel","package":"b","name":"x","entries":[{"name":"b.v1"}]}
{"schema":"olm.bundle","package":"b","name":"b.v1","image":"example.test/b:1","properties":[` +
	`{"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}
`

// Invalid packages of a directory are refused, left out or repaired; the account says which.
func TestInvalidPackages(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(twoPackages), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o                render.Options
		packages         int
		leftOut, repairs int
	}{
		"left out":                    {render.Options{KeepGoing: true}, 1, 1, 0},
		"repaired":                    {render.Options{Repair: true}, 2, 0, 1},
		"repaired before others left": {render.Options{Repair: true, KeepGoing: true}, 2, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Account = &render.Account{}
			blobs, err := c.o.Render(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := declcfg.Collect(blobs)
			if err != nil || len(got.Packages) != c.packages || got.Validate() != nil {
				t.Errorf("%v, %v", got, err)
			}
			if len(c.o.Account.LeftOut) != c.leftOut || len(c.o.Account.Repairs) != c.repairs {
				t.Errorf("%+v", c.o.Account)
			}
			if c.leftOut > 0 && (c.o.Account.LeftOut[0].Package != "b" || c.o.Account.LeftOut[0].Reason == nil) {
				t.Errorf("left out: %+v", c.o.Account.LeftOut)
			}
		})
	}
}

// A catalog image is described, opened, and compared between its platforms.
func TestCatalogImages(t *testing.T) {
	r := testregistry.New(t)
	image := func(text string) testregistry.Image {
		return testregistry.Image{Labels: map[string]string{configsLabel: "/configs"},
			Layers: []map[string]string{{"configs/catalog.json": text}}}
	}
	digest := r.AddImage(t, "catalog", "v1", image(twoPackages))
	name := r.Host() + "/catalog:v1"
	o := render.Options{Images: client(t, r), TempDir: t.TempDir()}
	d, err := render.Describe(t.Context(), o.Images, name)
	if err != nil || len(d.Variants) != 1 || d.Variants[0].Config.Config.Labels[configsLabel] != "/configs" {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := render.SameOnAll(t.Context(), d, nil, o); err != nil {
		t.Error(err)
	}
	files, err := o.OpenCatalogImage(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(files.Configs, "catalog.json"); err != nil || string(text) != twoPackages {
		t.Errorf("%s, %v", text, err)
	}
	if files.Digest != r.Host()+"/catalog@"+digest.String() || files.Labels[configsLabel] != "/configs" {
		t.Errorf("%+v", files)
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
	if _, err := render.Describe(t.Context(), o.Images, "catalog"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a short name: %v", err)
	}
}

// A name of an image has a registry or a transport.
func TestNamesOfImages(t *testing.T) {
	for ref, is := range map[string]bool{"quay.io/a/b:v1": true, "docker://quay.io/a/b": true, "oci:dir": true,
		"catalog": false, "acme/catalog": false, "../catalog": false} {
		if (render.CheckName(ref) == nil) != is {
			t.Errorf("%s: not %t", ref, is)
		}
		var name *render.NameError
		if err := render.CheckName(ref); errors.As(err, &name) == is || !is && name.Reference != ref {
			t.Errorf("%s: %v", ref, err)
		}
		if want := "failed to pull image \"" + ref + "\": " + fmt.Sprint(reasonOf(name)); !is && name.OpmMessage() != want {
			t.Errorf("got %s, want %s", name.OpmMessage(), want)
		}
	}
}

func reasonOf(e *render.NameError) error {
	if e == nil {
		return nil
	}
	return e.Reason
}

// The files of a bundle are there during the call.
func TestBundleFiles(t *testing.T) {
	var names []string
	const dir = "../testdata/bundles/etcd/0.9.4"
	err := render.Options{}.BundleFiles(t.Context(), dir, func(b render.FetchedBundle, files fs.FS) error {
		if b.Bundle.Package != "etcd" {
			t.Errorf("%+v", b.Bundle)
		}
		entries, err := fs.ReadDir(files, ".")
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return err
	})
	if err != nil || !slices.Contains(names, "manifests") || !slices.Contains(names, "metadata") {
		t.Errorf("%q, %v", names, err)
	}
	var of *render.ReferenceError
	err = render.Options{}.BundleFiles(t.Context(), t.TempDir(), nil)
	if !errors.As(err, &of) {
		t.Errorf("an empty directory: %v", err)
	}
}

// The platforms of an image may have other layers, but not another catalog.
func TestPlatformsOfACatalog(t *testing.T) {
	r := testregistry.New(t)
	image := func(layers ...map[string]string) testregistry.Image {
		return testregistry.Image{Labels: map[string]string{configsLabel: "/configs"}, Layers: layers}
	}
	catalog := map[string]string{"configs/catalog.json": twoPackages}
	for tag, c := range map[string]struct {
		second testregistry.Image
		want   error
	}{
		"same":  {image(catalog, map[string]string{"bin/opm": "arm64"}), nil},
		"other": {image(map[string]string{"configs/catalog.json": "{}"}), render.ErrPlatformsDiffer},
	} {
		c.second.Platform = v1.Platform{OS: "linux", Architecture: "arm64"}
		r.AddIndex(t, "catalog", tag, nil, []testregistry.Image{image(catalog), c.second})
		o := render.Options{Images: client(t, r), TempDir: t.TempDir()}
		d, err := render.Describe(t.Context(), o.Images, r.Host()+"/catalog:"+tag)
		if err != nil {
			t.Fatal(err)
		}
		err = render.SameOnAll(t.Context(), d, nil, o)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", tag, err)
		}
	}
}

// Only the wanted platforms are compared: of an architecture one variant if it is named, else all.
func TestPlatformsThatAreCompared(t *testing.T) {
	r := testregistry.New(t)
	image := func(architecture, variant, text string) testregistry.Image {
		return testregistry.Image{Labels: map[string]string{configsLabel: "/configs"},
			Platform: v1.Platform{OS: "linux", Architecture: architecture, Variant: variant},
			Layers:   []map[string]string{{"configs/catalog.json": text}}}
	}
	r.AddIndex(t, "catalog", "v1", nil, []testregistry.Image{image("amd64", "", twoPackages),
		image("arm", "v6", "{}"), image("arm", "v7", twoPackages)})
	o := render.Options{Images: client(t, r), TempDir: t.TempDir()}
	d, err := render.Describe(t.Context(), o.Images, r.Host()+"/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	for variant, want := range map[string]error{"": render.ErrPlatformsDiffer, "v6": render.ErrPlatformsDiffer, "v7": nil} {
		err := render.SameOnAll(t.Context(), d, []v1.Platform{{OS: "linux", Architecture: "amd64"},
			{OS: "linux", Architecture: "arm", Variant: variant}}, o)
		if !errors.Is(err, want) {
			t.Errorf("linux/arm/%s: got %v", variant, err)
		}
	}
}
