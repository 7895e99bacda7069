package serve

import (
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// BenchmarkEncodePackage makes the cache file of a package whose bundles hold their manifests.
func BenchmarkEncodePackage(b *testing.B) {
	fsys, err := declcfg.OpenDir("../testdata/fbc/mini/trident-operator")
	if err != nil {
		b.Fatal(err)
	}
	c, err := declcfg.Load(b.Context(), fsys, declcfg.LoadOptions{Lazy: true})
	if err != nil {
		b.Fatal(err)
	}
	file, err := EncodePackage(c)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodePackage(c); err != nil {
			b.Fatal(err)
		}
	}
}
