package build

import (
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/images/imagetest"
)

// A layer of the base that is built again on top of it is listed twice, and its packages are in the upper one.
func TestLayersThatTheBaseHasAlready(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "base")
	first := catalog(t, CatalogInput{FS: packageFS("foo", "bar")}, Options{})
	push(t, first, "oci:"+dir+":v1")
	ref, err := NamedBase(imagetest.Client(t), "oci:"+dir+":v1")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{"gzip": {Base: ref}, "twins": {Base: ref, Compression: CompressionAuto}} {
		img := catalog(t, CatalogInput{FS: packageFS("foo")}, o)
		var kinds []LayerKind
		for _, l := range img.Layers {
			kinds = append(kinds, l.Kind)
		}
		want := 4 // foo and bar of the base, reset, foo
		if name == "twins" {
			want += 2 // reset and foo with zstd
		}
		if img.Totals.Packages != 1 || img.Totals.Layers != want || len(img.Layers) != want {
			t.Errorf("%s: %+v, layers %q", name, img.Totals, kinds)
		}
		var size int64
		sized := map[string]bool{}
		for _, l := range img.Layers {
			if !sized[l.Digest.String()] {
				sized[l.Digest.String()] = true
				size += l.Size
			}
		}
		if img.Totals.Size != size {
			t.Errorf("%s: %d bytes, and the layers have %d", name, img.Totals.Size, size)
		}
		if name == "gzip" && (len(img.Layers) != 4 ||
			img.Layers[1].Digest != img.Layers[3].Digest && img.Layers[0].Digest != img.Layers[3].Digest) {
			t.Errorf("%s: no layer of the base is repeated: %q", name, kinds)
		}
	}
}
