package build

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/serve"
)

// One digest on any machine: with one processor or eight, any umask, time zone, place for temporary files, and a second time
// from the same process.
func TestOneDigestOnEveryMachine(t *testing.T) {
	cache := func(p PackageCatalog) (CacheFile, error) {
		var sources []serve.SourceFile
		for _, s := range p.Sources {
			sources = append(sources, serve.SourceFile{Name: s.Name, Size: s.Size, Digest: s.Digest, Packages: 1})
		}
		content, err := serve.EncodePackage(p.Catalog, sources...)
		return CacheFile{Name: serve.CacheFileName(p.Package), Content: content}, err
	}
	in := sampleFS()
	for name, f := range in {
		in[name] = file(strings.ReplaceAll(string(f.Data), "sha256:abc", "sha256:"+strings.Repeat("a", 64)))
	}
	processors, zone := runtime.GOMAXPROCS(0), time.Local
	t.Cleanup(func() { runtime.GOMAXPROCS(processors); time.Local = zone })
	var first digest.Digest
	for _, m := range []struct {
		processors, umask int
		zone              int // hours east of Greenwich
	}{{1, 0o022, 0}, {8, 0o022, 0}, {8, 0o077, 9}, {2, 0, -5}} {
		runtime.GOMAXPROCS(m.processors)
		time.Local = time.FixedZone("here", m.zone*60*60) // TZ is read once in a process
		o := Options{Dir: t.TempDir(), Compression: CompressionAuto, Cache: cache, Servers: twoServers(t), MaxLayers: 4}
		if err := os.Chmod(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		was := syscall.Umask(m.umask)
		img, err := Catalog(t.Context(), CatalogInput{FS: in}, o)
		syscall.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = img.Digest
		}
		if img.Digest != first {
			t.Errorf("%+v: %s, and %s before", m, img.Digest, first)
		}
		img.Close()
	}
}
