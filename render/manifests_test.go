package render_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render"
)

// No recorded catalog or bundle is mistaken for package manifests, even an invalid one.
func TestCatalogsAndBundlesAreNoPackageManifests(t *testing.T) {
	seen := 0
	for root, want := range map[string]render.Kind{"../testdata/oracle/fbc-cases": render.CatalogDirectory,
		"../testdata/fbc": render.CatalogDirectory, "../testdata/bundles": render.BundleDirectory} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			kind, err := render.Classify(path)
			if err != nil || kind == render.ManifestsDirectory {
				t.Errorf("%s is a %s, %v", path, kind, err)
			}
			if kind == want {
				seen++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Errorf("only %d directories", seen)
	}
}

func TestPackageManifestsAreRendered(t *testing.T) {
	dir := recorded.Export(t)
	for _, ref := range []string{dir, filepath.Join(dir, "etcd")} {
		if kind, err := render.Classify(ref); err != nil || kind != render.ManifestsDirectory {
			t.Fatalf("%s is a %s, %v", ref, kind, err)
		}
	}
	blobs, err := render.Options{Allow: []render.Kind{render.ManifestsDirectory}}.Render(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := declcfg.Collect(blobs)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || len(c.Bundles) != 12 {
		t.Errorf("%d bundles, %v", len(c.Bundles), err)
	}
	again, err := declcfg.Collect(render.Options{}.RenderManifests(t.Context(), dir))
	if err != nil || len(again.Bundles) != len(c.Bundles) {
		t.Errorf("without determining the kind: %v, %v", again, err)
	}
	var of *render.ReferenceError
	if _, err := declcfg.Collect(render.Options{}.RenderManifests(t.Context(), "absent")); !errors.As(err, &of) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := (render.Options{Allow: []render.Kind{render.CatalogDirectory}}).Render(t.Context(), dir); !errors.Is(err, render.ErrNotAllowed) {
		t.Errorf("got %v", err)
	}
}

// Each bundle of package manifests can be added to a catalog.
func TestBundlesOfPackageManifests(t *testing.T) {
	dir := recorded.Export(t)
	template, err := render.ParseImageTemplate("example.test/{{.Package}}:v{{.Version}}")
	if err != nil {
		t.Fatal(err)
	}
	for image, o := range map[string]render.Options{"": {}, "example.test/etcd:v0.6.1": {ImageTemplate: template}} {
		got, err := render.Bundles(t.Context(), []string{dir, "../testdata/bundles/etcd/0.9.4"}, o, whole)
		if err != nil || len(got) != 13 {
			t.Fatalf("%d bundles, %v", len(got), err)
		}
		first := got[0]
		if first.Image != image || first.Reference != dir || first.Bundle.CSV.Name != "etcdoperator.v0.6.1" ||
			!slices.Equal(first.Bundle.Channels, []string{"alpha"}) {
			t.Errorf("got %+v", first)
		}
	}
	if err := os.Remove(filepath.Join(dir, "etcd/0.9.0/etcdoperator.v0.9.0.clusterserviceversion.yaml")); err != nil {
		t.Fatal(err)
	}
	got, err := render.Bundles(t.Context(), []string{dir, "../testdata/bundles/etcd/0.9.4"}, render.Options{}, whole)
	if err == nil || !strings.Contains(err.Error(), "replaces nonexistent bundle etcdoperator.v0.9.0") ||
		len(got) != 1 {
		t.Errorf("%d bundles, %v", len(got), err)
	}
	// With KeepGoing the valid packages are returned, and the error reports the invalid one.
	got, err = render.Bundles(t.Context(), []string{dir}, render.Options{KeepGoing: true}, whole)
	if err == nil || !strings.Contains(err.Error(), "replaces nonexistent bundle etcdoperator.v0.9.0") ||
		len(got) != 6 {
		t.Errorf("%d bundles, %v", len(got), err)
	}
}
