package manifests_test

import (
	"testing"

	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// The bundles of recorded catalogs and some more: read and rendered, one after the other.
func BenchmarkBundles(b *testing.B) {
	all := whole(b).bundles
	b.Run("read and render", func(b *testing.B) {
		for b.Loop() {
			for _, files := range all {
				if x, err := manifests.Read(files); err == nil {
					_, _ = x.Manifests(manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager})
				}
			}
		}
		perBundle(b, len(all))
	})
	b.Run("render", func(b *testing.B) {
		var read []*manifests.Bundle
		for _, files := range all {
			if x, err := manifests.Read(files); err == nil {
				read = append(read, x)
			}
		}
		for b.Loop() {
			for _, x := range read {
				_, _ = x.Manifests(manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager})
			}
		}
		perBundle(b, len(read))
	})
}

func perBundle(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/bundle")
}
