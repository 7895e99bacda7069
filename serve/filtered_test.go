package serve_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve"
)

// filtered returns a catalog without one package, and with only the head of one channel of another, as mirroring tools
// leave them.
func filtered(c *declcfg.Catalog, without, reduced string) *declcfg.Catalog {
	next := &declcfg.Catalog{}
	for name, part := range c.ByPackage() {
		if name == without {
			continue
		}
		if name == reduced {
			channel := part.Channels[0]
			h := head(&channel)
			channel.Entries = []declcfg.ChannelEntry{h}
			part.Channels = []declcfg.Channel{channel}
			part.Packages[0].DefaultChannel = channel.Name
			part.Bundles = slices.DeleteFunc(slices.Clone(part.Bundles),
				func(b declcfg.Bundle) bool { return b.Name != h.Name })
			part.Deprecations = nil
		}
		next.Append(part)
	}
	return next
}

// openCounter counts how often each file is opened.
type openCounter struct {
	fs.FS
	mu    sync.Mutex
	opens map[string]int
}

func (c *openCounter) Open(name string) (fs.File, error) {
	c.mu.Lock()
	c.opens[name]++
	c.mu.Unlock()
	return c.FS.Open(name)
}

// If another tool has filtered a catalog's files and left the complete cache, the answers are those of the present
// files, and only what changed is built.
func TestFilteredCatalogBesideOldCache(t *testing.T) {
	runs(t, 3, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		s := newScene(t)
		whole := s.copy(t)
		c := filtered(s.m.catalog, "a", "b")
		dir := s.copy(t).catalog
		s.must(os.RemoveAll(filepath.Join(dir, "a")))
		r.writeAs(t, dir, c.ByPackage()["b"], filePerPackage, ".json")
		server := serve.New(serve.Limits{}, nil)
		client := startServer(t, server)

		// The cache of an image, which is read-only.
		opened := &openCounter{FS: os.DirFS(dir), opens: map[string]int{}}
		server.SetStore(load(t, serve.FileSystem("image", opened, os.DirFS(s.cache)), serve.LoadOptions{}))
		client.answersAs(t, model{c}, r, 30)
		for name, n := range opened.opens {
			// Comparing reads a file once.
			if built := n > 1; built != (name == "b/catalog.json") && filepath.Base(name) == "catalog.json" {
				t.Errorf("%s was opened %d times", name, n)
			}
		}

		// A writable directory.
		before := map[string]os.FileInfo{}
		for _, name := range []string{"_.cache", "d.cache", "b.cache"} {
			info, err := os.Stat(s.path(name))
			s.must(err)
			before[name] = info
		}
		server.SetStore(load(t, directorySource(t, dir), serve.LoadOptions{CacheDir: s.cache}))
		client.answersAs(t, model{c}, r, 30)
		for name, info := range before {
			now, err := os.Stat(s.path(name))
			s.must(err)
			if kept := os.SameFile(info, now); kept != (name != "b.cache") {
				t.Errorf("%s: is the old file: %v", name, kept)
			}
		}
		if _, err := os.Stat(s.path("a.cache")); !os.IsNotExist(err) {
			t.Errorf("the cache of the package that is gone: %v", err)
		}

		// All in one file, as some tools write it.
		dir = t.TempDir()
		r.writeAs(t, dir, c, oneFile, ".json")
		server.SetStore(load(t, serve.FileSystem("image", os.DirFS(dir), os.DirFS(whole.cache)), serve.LoadOptions{}))
		client.answersAs(t, model{c}, r, 30)
	})
}
