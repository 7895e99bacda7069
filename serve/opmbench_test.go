package serve_test

import (
	"os"
	"testing"

	"github.com/operator-bindery/bindery/serve"
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
