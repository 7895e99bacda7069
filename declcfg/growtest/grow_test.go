package growtest

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

func TestGrownCatalogIsValid(t *testing.T) {
	from := os.DirFS("../../testdata/fbc/mini")
	for _, c := range []struct{ packages, bundles int }{{12, 0}, {0, 150}} {
		dir := t.TempDir()
		if err := Catalog(dir, c.packages, c.bundles, from); err != nil {
			t.Fatal(err)
		}
		catalog, err := declcfg.Load(t.Context(), os.DirFS(dir), declcfg.LoadOptions{Skeleton: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := catalog.Validate(); err != nil {
			t.Error(err)
		}
		if len(catalog.Packages) < c.packages || len(catalog.Bundles) < c.bundles {
			t.Errorf("%d packages, %d bundles; want %+v", len(catalog.Packages), len(catalog.Bundles), c)
		}
	}
	if err := Catalog(t.TempDir(), 1, 0, fstest.MapFS{"notes/README.md": {}}); err == nil {
		t.Error("a catalog was made of nothing")
	}
}
