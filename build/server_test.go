package build

import (
	"debug/elf"
	"io"
	"os"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/layers"
)

// Images that share the layers of their servers are the same as without sharing, and have separate files.
func TestServerLayers(t *testing.T) {
	opened := 0
	program := program(t, elf.EM_X86_64, "x")
	s := server(t, "amd64", elf.EM_X86_64)
	s.program = layers.Bytes(cataloglayer.ServerPath, 0o755, program)
	open := s.program.Open
	var mu sync.Mutex
	s.program.Open = func() (io.ReadCloser, error) {
		mu.Lock()
		opened++
		mu.Unlock()
		return open()
	}
	o := Options{Servers: []Server{s}, Platform: v1.Platform{OS: "linux", Architecture: "amd64"}}
	want := catalog(t, CatalogInput{FS: sampleFS()}, o)
	opened = 0 // it has been hashed
	o.serverLayers = newServerLayers(t.TempDir())
	var wg sync.WaitGroup
	made := make([]*Image, 4)
	for i := range made {
		wg.Go(func() { made[i] = catalog(t, CatalogInput{FS: sampleFS()}, o) })
	}
	wg.Wait()
	for i, img := range made {
		if img.Digest != want.Digest {
			t.Errorf("image %d: %s, want %s", i, img.Digest, want.Digest)
		}
		path := img.files[img.Layers[0].Digest]
		if info, err := os.Stat(path); err != nil || info.Size() != img.Layers[0].Size {
			t.Errorf("image %d: %v %v", i, info, err)
		}
		for j, other := range made[:i] {
			if other.files[img.Layers[0].Digest] == path {
				t.Errorf("images %d and %d share a file", i, j)
			}
		}
	}
	if opened != 1 {
		t.Errorf("the server was read %d times", opened)
	}
}
