package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/race"
)

// fillCatalog writes a catalog of packages whose bundles have manifests, and returns the total size of its files.
func fillCatalog(t testing.TB, dir string, packages int) (size int) {
	t.Helper()
	for n := range packages {
		c := largeCatalog(t, 4, 50<<10)
		name := fmt.Sprintf("p%d", n)
		c.Packages[0].Name = name
		for i := range c.Channels {
			c.Channels[i].Package = name
		}
		for i := range c.Bundles {
			b := &c.Bundles[i]
			b.Package = name
			for j, p := range b.Properties {
				if p.Type == declcfg.PropertyPackage {
					b.Properties[j].Value = bytes.Replace(p.Value, []byte(`"big"`), fmt.Appendf(nil, "%q", name), 1)
				}
			}
		}
		var text bytes.Buffer
		if err := declcfg.FormatJSON.Write(&text, c.Blobs()); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "catalog.json"), text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		size += text.Len()
	}
	return size
}

func fill(t testing.TB, dir string) {
	t.Helper()
	src, err := Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(t.Context(), src, LoadOptions{CacheDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Filling a cache allocates memory for the documents and little more: the buffers for decoding and collecting manifests
// are reused.
func TestFillingTakesNewMemoryForDocumentsOnly(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector sync.Pool forgets at random what it is given")
	}
	dir := t.TempDir()
	size := fillCatalog(t, dir, 40)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	fill(t, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fill(t, dir)
	runtime.ReadMemStats(&after)
	ratio := float64(after.TotalAlloc-before.TotalAlloc) / float64(size)
	t.Logf("%.1f bytes of memory for a byte of the catalog", ratio)
	if ratio > 3 {
		t.Errorf("%.1f bytes of memory were taken for each byte of the catalog", ratio)
	}
}

func BenchmarkFillCache(b *testing.B) {
	dir := b.TempDir()
	b.SetBytes(int64(fillCatalog(b, dir, 40)))
	b.ReportAllocs()
	for b.Loop() {
		fill(b, dir)
	}
}
