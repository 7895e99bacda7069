package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/akrylysov/pogreb"

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

// TestOPMCacheHasTheAnswersOfTheCatalog compares everything that can be answered from opm's cache with what is answered from
// the catalog itself, byte by byte, and makes the recorded calls.
func TestOPMCacheHasTheAnswersOfTheCatalog(t *testing.T) {
	catalogs := map[string]fs.FS{"sample": nil, "mini": os.DirFS("../testdata/fbc/mini")}
	calls := map[string]string{}
	for _, name := range []string{"deprecations", "constraint", "truncated"} {
		dir := filepath.Join("testdata", "recorded", name)
		catalogs[name], calls[name] = serve.UnpackedFS(t, filepath.Join(dir, "catalog")), filepath.Join(dir, "calls.ndjson")
	}
	files := fstest.MapFS{}
	for name, text := range serve.SampleFiles() {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	catalogs["sample"] = files
	for name, catalog := range catalogs {
		native, _ := mustLoad(t, serve.FileSystem(name, catalog, nil), serve.LoadOptions{})
		for _, format := range formats {
			t.Run(name+" "+format, func(t *testing.T) {
				cache := t.TempDir()
				refresh(t, catalog, cache, format)
				s, log := mustLoad(t, serve.FileSystem(name, catalog, nil), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
				if !strings.Contains(log, "found existing cache contents") || strings.Contains(log, "building") {
					t.Errorf("log: %s", log)
				}
				differ(t, serve.Dump(t, s, format == serve.FormatJSON), serve.Dump(t, native, format == serve.FormatJSON))
				if calls[name] != "" {
					server := serve.New(serve.Limits{}, nil)
					again, _ := mustLoad(t, serve.FileSystem(name, catalog, nil), serve.LoadOptions{CacheDir: cache})
					server.SetStore(serve.NewStore(again.Packages()))
					serve.Replay(t, serve.StartServer(t, server), serve.ReadCalls(t, calls[name]))
				}
			})
		}
	}
}

// TestOPMCacheOfEveryRecordedCatalog compares the answers for the catalogs whose answers opm's server recorded: other tests
// make those calls.
func TestOPMCacheOfEveryRecordedCatalog(t *testing.T) {
	dir := serve.OracleDir(t)
	cases, err := filepath.Glob(filepath.Join(dir, "golden-grpc", "*"))
	if err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, path := range cases {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "-db") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var catalog fs.FS
			migrated := filepath.Join(dir, "golden", strings.TrimSuffix(name, "-fbc"), "migrate.json.d")
			if name == "fbc-mini" {
				catalog = os.DirFS(filepath.Join(dir, "fbc/mini"))
			} else if c, ok := strings.CutPrefix(name, "case-"); ok {
				catalog = os.DirFS(filepath.Join(dir, "fbc-cases", c))
			} else if _, err := os.Stat(migrated); err == nil {
				catalog = serve.UnpackedFS(t, migrated)
			} else {
				catalog = serve.TarFS(t, serve.ReadTestFile(t, migrated+".tar"))
			}
			native, _ := mustLoad(t, serve.FileSystem(name, catalog, nil), serve.LoadOptions{})
			want := serve.Dump(t, native, true)
			for _, format := range formats {
				cache := t.TempDir()
				refresh(t, catalog, cache, format)
				s, _ := mustLoad(t, serve.FileSystem(name, catalog, nil), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
				differ(t, serve.Dump(t, s, true), want)
			}
		})
	}
}

// tree is what a directory holds: names, modes, times and bytes.
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

// plain hides that files can be read at an offset.
type plain struct{ fs.FS }

func (p plain) Open(name string) (fs.File, error) {
	f, err := p.FS.Open(name)
	if d, ok := f.(fs.ReadDirFile); ok {
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return d, nil
		}
	}
	return struct{ fs.File }{f}, err
}

// TestOPMCacheIsOnlyRead: nothing in the directory changes, no lock appears, and neither random access nor a place for
// temporary files is needed.
func TestOPMCacheIsOnlyRead(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			catalog, cache := sample(t, format)
			native, _ := mustLoad(t, directory(t, catalog), serve.LoadOptions{})
			want, before := serve.Dump(t, native, true), tree(t, cache)
			s, _ := mustLoad(t, serve.FileSystem("image", os.DirFS(catalog), plain{os.DirFS(cache)}), serve.LoadOptions{EnforceIntegrity: true})
			differ(t, serve.Dump(t, s, true), want)
			t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
			s, log := mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
			differ(t, serve.Dump(t, s, true), want)
			if !strings.Contains(log, "kept in memory") {
				t.Errorf("log: %s", log)
			}
			differ(t, tree(t, cache), before)
		})
	}
}

// TestOPMCacheThatDoesNotMatch: refused in opm's words where integrity is enforced; else the catalog's own answers, and opm's
// directory as it was; and a cache that matches where it is to be refreshed.
func TestOPMCacheThatDoesNotMatch(t *testing.T) {
	const log = "pogreb.v1/db/00000-1.psg"
	flip := func(name string, at int) func(t *testing.T, catalog, cache string) {
		return func(t *testing.T, _, cache string) {
			edit(t, filepath.Join(cache, name), func(text []byte) []byte {
				if at < 0 {
					at += len(text)
				}
				text[at] ^= 1
				return text
			})
		}
	}
	cut := func(name string, n int) func(t *testing.T, catalog, cache string) {
		return func(t *testing.T, _, cache string) {
			edit(t, filepath.Join(cache, name), func(text []byte) []byte { return text[:len(text)-n] })
		}
	}
	remove := func(name string) func(t *testing.T, catalog, cache string) {
		return func(t *testing.T, _, cache string) {
			if err := os.RemoveAll(filepath.Join(cache, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	catalogChanged := func(t *testing.T, catalog, _ string) {
		edit(t, filepath.Join(catalog, "a/catalog.yaml"), func(text []byte) []byte {
			return bytes.Replace(text, []byte("About a"), []byte("About b"), 1)
		})
	}
	for _, test := range []struct {
		name, format string
		change       func(t *testing.T, catalog, cache string)
		words        string
	}{
		{"the catalog changed", serve.FormatPogreb, catalogChanged, `integrity check failed: cache requires rebuild: cache reports digest as "`},
		{"the catalog changed", serve.FormatJSON, catalogChanged, `integrity check failed: cache requires rebuild: cache reports digest as "`},
		{"a digest of another", serve.FormatPogreb, flip("pogreb.v1/digest", 0), "but computed digest is"},
		{"a digest of another", serve.FormatJSON, flip("digest", 0), "but computed digest is"},
		{"no digest, as after opm was killed", serve.FormatPogreb, remove("pogreb.v1/digest"), "integrity check failed: read existing cache digest: "},
		{"no database", serve.FormatPogreb, remove("pogreb.v1/db"), "cache requires rebuild"},
		{"no log", serve.FormatPogreb, remove(log), "a database without a log"},
		{"a value is damaged", serve.FormatPogreb, flip(log, -100), "is damaged"},
		{"the log is cut within a record", serve.FormatPogreb, cut(log, 3), "it ends in the record"},
		{"the log is cut within its header", serve.FormatPogreb, func(t *testing.T, _, cache string) {
			edit(t, filepath.Join(cache, log), func(text []byte) []byte { return text[:100] })
		}, "no header"},
		{"no log but a directory of its name", serve.FormatPogreb, func(t *testing.T, catalog, cache string) {
			remove(log)(t, catalog, cache)
			if err := os.Mkdir(filepath.Join(cache, log), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"a log that is a link out of the directory", serve.FormatPogreb, func(t *testing.T, catalog, cache string) {
			remove(log)(t, catalog, cache)
			if err := os.Symlink(filepath.Join(catalog, "a/catalog.yaml"), filepath.Join(cache, log)); err != nil {
				t.Fatal(err)
			}
		}, "cache requires rebuild"},
		{"two logs with one place", serve.FormatPogreb, func(t *testing.T, _, cache string) {
			edit(t, filepath.Join(cache, log), func(text []byte) []byte {
				if err := os.WriteFile(filepath.Join(cache, "pogreb.v1/db/00001-1.psg"), text, 0o644); err != nil {
					t.Fatal(err)
				}
				return text
			})
		}, "the same place"},
		{"an answer changed", serve.FormatJSON, flip("cache/a_stable_a.v1.0.0.json", 20), "cache requires rebuild"},
		{"an answer is missing", serve.FormatJSON, remove("cache/a_stable_a.v1.0.0.json"), "but computed digest is"},
		{"the index is no JSON", serve.FormatJSON, flip("cache/packages.json", 0), "but computed digest is"},
		{"no index", serve.FormatJSON, remove("cache/packages.json"), "packages.json"},
	} {
		t.Run(test.format+": "+test.name, func(t *testing.T) {
			catalog, cache := sample(t, test.format)
			test.change(t, catalog, cache)
			before := tree(t, cache)
			src := directory(t, catalog)
			if _, _, err := loadStore(t, src, serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true}); !errors.Is(err, serve.ErrIntegrity) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("enforced: %v, want %q", err, test.words)
			}
			if _, _, err := loadStore(t, src, serve.LoadOptions{CacheDir: cache, MustWrite: true}); err == nil {
				t.Error("refreshed by nobody")
			}
			native, _ := mustLoad(t, src, serve.LoadOptions{})
			s, log := mustLoad(t, src, serve.LoadOptions{CacheDir: cache})
			differ(t, serve.Dump(t, s, false), serve.Dump(t, native, false))
			if !strings.Contains(log, "cache requires rebuild") || !strings.Contains(log, "building cache") {
				t.Errorf("the log says nothing: %s", log)
			}
			differ(t, tree(t, cache), before)
			s, _ = mustLoad(t, src, serve.LoadOptions{CacheDir: cache, MustWrite: true, Refresh: opmcache.Refresh})
			differ(t, serve.Dump(t, s, true), serve.Dump(t, native, true))
			valid(t, os.DirFS(catalog), cache)
		})
	}
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

// TestOPMDatabaseThatGrew reads a database that the library of opm has written to again and again: the last value of a key
// counts, and a key that was removed is not there. One that was never closed is read as well.
func TestOPMDatabaseThatGrew(t *testing.T) {
	catalog, cache := sample(t, serve.FormatPogreb)
	native, _ := mustLoad(t, directory(t, catalog), serve.LoadOptions{})
	db, err := pogreb.Open(filepath.Join(cache, "pogreb.v1/db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{}
	for it := db.Items(); ; {
		key, value, err := it.Next()
		if errors.Is(err, pogreb.ErrIterationDone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		values[string(key)] = bytes.Clone(value)
	}
	for key := range values {
		if err := errors.Join(db.Put([]byte(key), []byte("old")), db.Put([]byte("x"+key), []byte("gone")), db.Delete([]byte("x"+key))); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range values {
		if err := db.Put([]byte(key), value); err != nil {
			t.Fatal(err)
		}
	}
	for _, closed := range []bool{false, true} {
		if closed {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			valid(t, os.DirFS(catalog), cache)
		} else if err := db.Sync(); err != nil {
			t.Fatal(err)
		}
		s, log := mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
		if !strings.Contains(log, "found existing cache contents") {
			t.Errorf("log: %s", log)
		}
		differ(t, serve.Dump(t, s, false), serve.Dump(t, native, false))
	}
	// What follows in a later log takes the place of what is in the first.
	db2 := filepath.Join(cache, "pogreb.v1/db")
	edit(t, filepath.Join(db2, "00000-1.psg"), func(text []byte) []byte {
		const header = 512
		if err := os.WriteFile(filepath.Join(db2, "00001-2.psg"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		return text[:header]
	})
	s, _ := mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true})
	differ(t, serve.Dump(t, s, false), serve.Dump(t, native, false))
}

// TestEmptyDirectoryGetsNativeCache: what opm would fill in its format is filled in this program's.
func TestEmptyDirectoryGetsNativeCache(t *testing.T) {
	catalog, cache := t.TempDir(), t.TempDir()
	serve.WriteTree(t, catalog, serve.SampleFiles())
	mustLoad(t, directory(t, catalog), serve.LoadOptions{CacheDir: cache, MustWrite: true, Refresh: func(context.Context, fs.FS, string, string) error {
		return errors.New("there is no cache of opm's")
	}})
	if _, err := os.Stat(filepath.Join(cache, "a.cache")); err != nil {
		t.Error(err)
	}
}
