package declcfg

import (
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
)

// gatedFS blocks the first file until the gate opens, and counts what is read from the others.
type gatedFS struct {
	fstest.MapFS
	gate chan struct{}
	read atomic.Int64
}

func (g *gatedFS) Open(name string) (fs.File, error) {
	f, err := g.MapFS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".json") {
		return f, err
	}
	return &gatedFile{f, g, name == "0.json"}, nil
}

type gatedFile struct {
	fs.File
	fs   *gatedFS
	held bool
}

func (f *gatedFile) Read(b []byte) (int, error) {
	if f.held {
		<-f.fs.gate
	}
	n, err := f.File.Read(b)
	if !f.held {
		f.fs.read.Add(int64(n))
	}
	return n, err
}

func TestWalkWaitsWithBoundedMemory(t *testing.T) {
	const each, files = 4 << 20, 6
	synctest.Test(t, func(t *testing.T) {
		blob := `{"schema":"x","package":"p","data":"` + strings.Repeat("a", 64<<10) + `"}` + "\n"
		g := &gatedFS{MapFS: fstest.MapFS{}, gate: make(chan struct{})}
		for i := range files {
			g.MapFS[string(rune('0'+i))+".json"] = &fstest.MapFile{Data: []byte(strings.Repeat(blob, each/len(blob)))}
		}
		done, blobs := make(chan error, 1), 0
		go func() {
			done <- Walk(t.Context(), g, LoadOptions{Jobs: 3}, func(*Meta) error { blobs++; return nil })
		}()
		synctest.Wait() // all jobs wait for the first file
		// Besides the waiting bytes, each of the two other jobs has a piece and a buffer.
		if read := g.read.Load(); read < aheadBytes/2 || read > aheadBytes+3<<20 {
			t.Errorf("%d bytes were read ahead of the first file, want about %d", read, aheadBytes)
		}
		close(g.gate)
		if err := <-done; err != nil || blobs != files*(each/len(blob)) {
			t.Errorf("%d blobs, error %v", blobs, err)
		}
	})
}

func TestWalkThatEndsEarlyLetsReadersGo(t *testing.T) {
	// synctest.Test returns after all goroutines of its bubble have ended.
	synctest.Test(t, func(t *testing.T) {
		blob := `{"schema":"x","data":"` + strings.Repeat("a", 1<<20) + `"}` + "\n"
		catalog := fstest.MapFS{}
		for i := range 8 {
			catalog[string(rune('0'+i))+".json"] = &fstest.MapFile{Data: []byte(strings.Repeat(blob, 4))}
		}
		if err := Walk(t.Context(), catalog, LoadOptions{Jobs: 4},
			func(*Meta) error { return io.ErrClosedPipe }); err != io.ErrClosedPipe {
			t.Errorf("error %v", err)
		}
	})
}
