package serve_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

var formats = []string{serve.FormatPogreb, serve.FormatJSON}

// sample returns a catalog directory and a directory with opm's cache of it.
func sample(t testing.TB, format string) (catalog, cache string) {
	t.Helper()
	catalog, cache = t.TempDir(), t.TempDir()
	serve.WriteTree(t, catalog, serve.SampleFiles())
	refresh(t, os.DirFS(catalog), cache, format)
	return catalog, cache
}

func refresh(t testing.TB, catalog fs.FS, cache, format string) {
	t.Helper()
	if err := opmcache.Refresh(t.Context(), catalog, cache, format); err != nil {
		t.Fatal(err)
	}
	valid(t, catalog, cache)
}

func valid(t testing.TB, catalog fs.FS, cache string) {
	t.Helper()
	if r, err := opmcache.Check(t.Context(), catalog, os.DirFS(cache)); err != nil || !r.Valid() {
		t.Fatalf("opm would not take the cache: %+v, %v", r, err)
	}
}

// loadStore loads a catalog and returns the store, which is closed with the test, and the log.
func loadStore(t testing.TB, src serve.Source, o serve.LoadOptions) (serve.Store, string, error) {
	t.Helper()
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := serve.Load(t.Context(), src, o)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, log.String(), err
}

func mustLoad(t testing.TB, src serve.Source, o serve.LoadOptions) (serve.Store, string) {
	t.Helper()
	s, log, err := loadStore(t, src, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

func directory(t testing.TB, dir string) serve.Source {
	t.Helper()
	src, err := serve.Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func differ(t testing.TB, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d\n got %.600s\nwant %.600s", i, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

// tree describes a directory: names, modes, times and bytes.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.Walk(dir, func(name string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, name, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(name)
			fmt.Fprintf(&out, "%q\n", text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func edit(t testing.TB, name string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, change(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOPMCacheIsNeitherReadNorChanged: the catalog is served from a native cache in a temporary file or in memory, and
// the directory does not change.
func TestOPMCacheIsNeitherReadNorChanged(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			catalog, cache := sample(t, format)
			native, _ := mustLoad(t, directory(t, catalog), serve.LoadOptions{})
			want, before := serve.Dump(t, native, true), tree(t, cache)
			s, log := mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache})
			differ(t, serve.Dump(t, s, true), want)
			if words := "cache of opm's (" + format + ")"; !strings.Contains(log, words) || !strings.Contains(log,
				"building cache") {
				t.Errorf("the log lacks %q: %s", words, log)
			}
			t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
			s, log = mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache})
			differ(t, serve.Dump(t, s, true), want)
			if !strings.Contains(log, "in memory") {
				t.Errorf("log: %s", log)
			}
			_, _, err := loadStore(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
			if !errors.Is(err, serve.ErrIntegrity) || !strings.Contains(err.Error(), format) {
				t.Errorf("enforced: %v", err)
			}
			if _, _, err := loadStore(t, directory(t, catalog),
				serve.LoadOptions{CacheDir: cache, MustWrite: true}); err == nil {
				t.Error("a cache of opm's was to be written, and that is no error")
			}
			differ(t, tree(t, cache), before)
		})
	}
}

// TestCacheOnlyRefreshesOPMCache: as in opm, a directory keeps its format, and a matching cache is not rewritten.
func TestCacheOnlyRefreshesOPMCache(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			catalog, cache := sample(t, format)
			before := tree(t, cache)
			o := serve.Options{CacheDir: cache, CacheOnly: true, PprofAddr: "", Refresh: opmcache.Refresh}
			if err := serve.Run(t.Context(), directory(t, catalog), o); err != nil {
				t.Fatal(err)
			}
			differ(t, tree(t, cache), before)
			edit(t, filepath.Join(catalog, "a/catalog.yaml"), func(text []byte) []byte {
				return bytes.Replace(text, []byte("About a"), []byte("About b"), 1)
			})
			o.Refresh = nil
			if err := serve.Run(t.Context(), directory(t, catalog), o); err == nil {
				t.Error("a server that writes no caches of opm's has refreshed one")
			}
			differ(t, tree(t, cache), before)
			o.Refresh = opmcache.Refresh
			if err := serve.Run(t.Context(), directory(t, catalog), o); err != nil {
				t.Fatal(err)
			}
			valid(t, os.DirFS(catalog), cache)
			if entries, err := filepath.Glob(filepath.Join(cache, "*"+".cache")); err != nil || len(entries) > 0 {
				t.Errorf("native files beside opm's: %v, %v", entries, err)
			}
		})
	}
}

// TestEmptyDirectoryGetsNativeCache: an empty directory is filled with the native format.
func TestEmptyDirectoryGetsNativeCache(t *testing.T) {
	catalog, cache := t.TempDir(), t.TempDir()
	serve.WriteTree(t, catalog, serve.SampleFiles())
	o := serve.Options{CacheDir: cache, CacheOnly: true, Refresh: opmcache.Refresh}
	if err := serve.Run(t.Context(), directory(t, catalog), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cache, "a.cache")); err != nil {
		t.Error(err)
	}
}
