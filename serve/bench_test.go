package serve

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/api"
)

// benchCatalog is a package of 200 bundles with manifests of 40 KiB and an image each.
func benchCatalog(b *testing.B) *declcfg.Catalog {
	c := largeCatalog(b, 200, 40<<10)
	for i := range c.Bundles {
		c.Bundles[i].Image = fmt.Sprintf("example.test/big:v0.0.%d", i)
	}
	return c
}

func BenchmarkEncodePackage(b *testing.B) {
	c := benchCatalog(b)
	b.ReportAllocs()
	for b.Loop() {
		file, err := EncodePackage(c, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(file)))
	}
}

func BenchmarkOpenPackage(b *testing.B) {
	file, err := EncodePackage(benchCatalog(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if err := open(file); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads an answer from the file without a network: the cost of the server itself.
func BenchmarkRead(b *testing.B) {
	c := newCatalog(catalogStore(b, benchCatalog(b)), 1<<20)
	r := &registry{reader: reader{budget: &budget{limit: 1 << 20, wait: 1}}}
	req := &api.GetBundleRequest{PkgName: "big", ChannelName: "c", CsvName: "big.v0.0.100"}
	b.ReportAllocs()
	for b.Loop() {
		a, err := r.getBundle(b.Context(), c, req)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(a.data.Len()))
		a.data.Free()
	}
}

func benchClient(b *testing.B) api.RegistryClient {
	s := newServer(Limits{}, nil)
	s.SetStore(catalogStore(b, benchCatalog(b)))
	return api.NewRegistryClient(startServer(b, s))
}

func BenchmarkGetBundle(b *testing.B) {
	client := benchClient(b)
	for b.Loop() {
		if _, err := client.GetBundle(b.Context(),
			&api.GetBundleRequest{PkgName: "big", ChannelName: "c", CsvName: "big.v0.0.100"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListBundles(b *testing.B) {
	client := benchClient(b)
	for b.Loop() {
		s, err := client.ListBundles(b.Context(), &api.ListBundlesRequest{})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for ; ; n++ {
			if _, err := s.Recv(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if n != 200 {
			b.Fatalf("%d bundles", n)
		}
	}
}
