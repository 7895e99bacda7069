package diff_test

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/declcfg/heaptest"
)

// The time grows linearly with the number of channels of a package: ns/channel must not grow.
func BenchmarkChannels(b *testing.B) {
	for _, n := range []int{5_000, 10_000, 20_000, 40_000} {
		fsys := heaptest.Many(1, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				stream := declcfg.Stream(b.Context(), fsys, declcfg.LoadOptions{}, nil)
				r, err := diff.Compare(stream, stream, diff.Options{})
				if err != nil || !r.Same || r.Old.Channels != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/channel")
		})
	}
}
