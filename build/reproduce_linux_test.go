package build

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/serve"
)

// The digest is the same on any machine: with one processor or eight, any umask, time zone or temporary directory, and
// a second time in the same process; with an empty layer cache, a complete one, or one that lost its bytes.
func TestOneDigestOnEveryMachine(t *testing.T) {
	cache := func(p cataloglayer.Package) (cataloglayer.File, error) {
		var sources []serve.SourceFile
		for _, s := range p.Sources {
			sources = append(sources, serve.SourceFile{Name: s.Name, Size: s.Size, Digest: s.Digest, Packages: 1})
		}
		content, err := serve.EncodePackage(p.Catalog, nil, sources...)
		return cataloglayer.File{Name: serve.CacheFileName(p.Name), Content: content}, err
	}
	in := sampleFS()
	for name, f := range in {
		in[name] = file(strings.ReplaceAll(string(f.Data), "sha256:abc", "sha256:"+strings.Repeat("a", 64)))
	}
	processors, zone := runtime.GOMAXPROCS(0), time.Local
	t.Cleanup(func() { runtime.GOMAXPROCS(processors); time.Local = zone })
	var first digest.Digest
	dir := t.TempDir()
	for _, m := range []struct {
		processors, umask int
		zone              int // hours east of Greenwich
		cache             string
	}{{1, 0o022, 0, "none"}, {8, 0o022, 0, "empty"}, {8, 0o077, 9, "full"}, {2, 0, -5, "full"},
		{1, 0o022, 0, "notes"}} {
		runtime.GOMAXPROCS(m.processors)
		time.Local = time.FixedZone("here", m.zone*60*60) // TZ is read once in a process
		o := Options{Dir: t.TempDir(), Compression: CompressionAuto,
			caches: cataloglayer.Caches{NativeID: "test 1", Native: cache}, Servers: twoServers(t), MaxLayers: 4}
		if err := os.Chmod(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if m.cache == "notes" {
			if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
				t.Fatal(err)
			}
		}
		if m.cache != "none" {
			o.Cache = knownIn(t, dir)
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
		for _, l := range img.Layers {
			if known := m.cache == "full" || m.cache == "notes"; l.Remembered != known {
				t.Errorf("%+v: layer %s: known %v", m, l.Digest, l.Remembered)
			}
		}
		img.Close()
	}
}
