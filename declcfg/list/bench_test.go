package list

import (
	"fmt"
	"os"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/heaptest"
)

// The time grows linearly with the number of packages: ns/package must not grow.
func BenchmarkPackages(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000, 8000} {
		dir := b.TempDir() // opening a file of a MapFS takes time proportional to its size
		if err := os.CopyFS(dir, heaptest.Many(n, 1)); err != nil {
			b.Fatal(err)
		}
		fsys := os.DirFS(dir)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				l, err := LoadPackages(declcfg.Stream(b.Context(), fsys, declcfg.LoadOptions{}, nil))
				if err != nil || len(l.Packages()) != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/package")
		})
	}
}
