package serve_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/operator-bindery/bindery/internal/heaptest"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// BenchmarkLoad is a start with a ready cache in each format, and without one.
func BenchmarkLoad(b *testing.B) {
	const catalog = "../testdata/fbc/mini"
	for _, format := range append([]string{"none", "native"}, formats...) {
		b.Run(format, func(b *testing.B) {
			src := directory(b, catalog)
			o := serve.LoadOptions{EnforceIntegrity: true}
			switch o.CacheDir = b.TempDir(); format {
			case "none":
				o = serve.LoadOptions{}
			case "native":
				s, err := serve.Load(b.Context(), src, serve.LoadOptions{CacheDir: o.CacheDir})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			default:
				refresh(b, os.DirFS(catalog), o.CacheDir, format)
			}
			for b.Loop() {
				s, err := serve.Load(b.Context(), src, o)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

// BenchmarkFill is the curve of the time that filling a cache of each format takes over the number of packages: ns/package
// must not grow.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 4000} {
		dir := b.TempDir()
		if err := os.CopyFS(dir, heaptest.Many(n, 1)); err != nil {
			b.Fatal(err)
		}
		for _, format := range append([]string{"native"}, formats...) {
			b.Run(fmt.Sprintf("%s/%d", format, n), func(b *testing.B) {
				for b.Loop() {
					cache, err := os.MkdirTemp(b.TempDir(), "")
					if err != nil {
						b.Fatal(err)
					}
					if format != "native" {
						if err := opmcache.Refresh(b.Context(), os.DirFS(dir), cache, format); err != nil {
							b.Fatal(err)
						}
						continue
					}
					s, err := serve.Load(b.Context(), directory(b, dir), serve.LoadOptions{CacheDir: cache})
					if err != nil {
						b.Fatal(err)
					}
					s.Close()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/package")
			})
		}
	}
}
