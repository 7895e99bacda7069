package bundle_test

import (
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
)

// BenchmarkReadAndBlob reads all recorded bundles and builds their blobs on one core.
func BenchmarkReadAndBlob(b *testing.B) {
	var all []fstest.MapFS
	var size int64
	for _, files := range allBundles(b) {
		all = append(all, files)
		for _, f := range files {
			size += int64(len(f.Data))
		}
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, files := range all {
			blob(b, read(b, files, bundle.ReadOptions{}), "example.test/image:v1")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(all)), "µs/bundle")
}
