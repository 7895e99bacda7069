package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// writeTree writes files below a directory.
func writeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loaded is the result of a load: the names of bundles in the order of ListBundles, and the log.
type loaded struct {
	bundles string
	log     string
}

func load(t *testing.T, dir string, o LoadOptions) (loaded, error) {
	t.Helper()
	src, err := Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	store, err := Load(t.Context(), src, o)
	if err != nil {
		return loaded{log: log.String()}, err
	}
	s := newServer(Limits{}, nil)
	s.SetStore(store)
	answers, err := call(t, startServer(t, s), "ListBundles", json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range answers {
		var b struct{ ChannelName, CSVName string }
		if err := json.Unmarshal(a, &b); err != nil {
			t.Fatal(err)
		}
		names = append(names, b.ChannelName+"/"+b.CSVName)
	}
	return loaded{strings.Join(names, " "), log.String()}, nil
}

const allBundles = "beta/a.v1.1.0 only/b.v1.0.0 stable/a.v1.0.0 stable/a.v1.1.0"

func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sampleDirs returns a catalog directory and a cache directory that was filled from it.
func sampleDirs(t *testing.T) (catalog, cache string) {
	t.Helper()
	catalog, cache = t.TempDir(), filepath.Join(t.TempDir(), "cache")
	writeTree(t, catalog,
		map[string]string{"a/catalog.yaml": sampleA, "b/catalog.yaml": sampleB, "none.yaml": sampleNone})
	got, err := load(t, catalog, LoadOptions{CacheDir: cache})
	if err != nil || got.bundles != allBundles {
		t.Fatalf("fill the cache: %v, %v", got, err)
	}
	if want := []string{"_.cache", "a.cache", "b.cache"}; !slices.Equal(cacheFiles(t, cache), want) {
		t.Fatalf("cache files %v, want %v", cacheFiles(t, cache), want)
	}
	return catalog, cache
}

func TestReadyCacheIsUsed(t *testing.T) {
	catalog, cache := sampleDirs(t)
	got, err := load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true})
	if err != nil || got.bundles != allBundles || got.log != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestCacheThatDoesNotMatch changes a catalog or its cache in many ways: the answers are those of the catalog, and with
// integrity enforced loading fails.
func TestCacheThatDoesNotMatch(t *testing.T) {
	bundleC := strings.NewReplacer("b.v", "c.v", "name: b\n", "name: c\n", "package: b", "package: c", "packageName: b",
		"packageName: c").Replace(sampleB)
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, catalog, cache string)
		want   string
		reason string
	}{
		{"a package was filtered out", func(t *testing.T, catalog, _ string) { remove(t, filepath.Join(catalog, "b")) },
			"beta/a.v1.1.0 stable/a.v1.0.0 stable/a.v1.1.0", "b/catalog.yaml is not there"},
		{"a bundle was filtered out", func(t *testing.T, catalog, _ string) {
			write(t, filepath.Join(catalog, "a/catalog.yaml"),
				strings.Replace(sampleA, "name: beta\nentries", "name: gamma\nentries", 1)[:strings.Index(sampleA,
					"---\nschema: olm.deprecations")])
		}, "gamma/a.v1.1.0 only/b.v1.0.0 stable/a.v1.0.0 stable/a.v1.1.0", "cache reports digest of a/catalog.yaml"},
		{"a byte changed and the size did not", func(t *testing.T, catalog, _ string) {
			write(t, filepath.Join(catalog, "b/catalog.yaml"), strings.ReplaceAll(sampleB, "only", "ONLY"))
		}, "ONLY/b.v1.0.0 beta/a.v1.1.0 stable/a.v1.0.0 stable/a.v1.1.0", "cache reports digest of b/catalog.yaml"},
		{"a package was added",
			func(t *testing.T, catalog, _ string) { write(t, filepath.Join(catalog, "c.yaml"), bundleC) },
			"beta/a.v1.1.0 only/b.v1.0.0 only/c.v1.0.0 stable/a.v1.0.0 stable/a.v1.1.0", "c.yaml is not in the cache"},
		{"a file was added to a package", func(t *testing.T, catalog, _ string) {
			write(t, filepath.Join(catalog, "more.yaml"),
				"{schema: olm.channel, package: b, name: second, entries: [{name: b.v1.0.0}]}")
		}, "beta/a.v1.1.0 only/b.v1.0.0 second/b.v1.0.0 stable/a.v1.0.0 stable/a.v1.1.0",
			"more.yaml is not in the cache"},
		{"a file is ignored now",
			func(t *testing.T, catalog, _ string) { write(t, filepath.Join(catalog, ".indexignore"), "/b\n") },
			"beta/a.v1.1.0 stable/a.v1.0.0 stable/a.v1.1.0", "b/catalog.yaml is not there"},
		{"a cache file was removed", func(t *testing.T, _, cache string) { remove(t, filepath.Join(cache, "b.cache")) },
			allBundles, "b/catalog.yaml is not in the cache"},
		{"a cache file is damaged", func(t *testing.T, _, cache string) {
			path := filepath.Join(cache, "a.cache")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[headerSize+10] ^= 1
			write(t, path, string(b))
		}, allBundles, "a.cache: package \\\"a\\\": cache file is corrupt"},
		{"a cache file is empty", func(t *testing.T, _, cache string) { write(t, filepath.Join(cache, "a.cache"), "") },
			allBundles, "a.cache: cache file is corrupt"},
		{"a cache file is of another version", func(t *testing.T, _, cache string) {
			path := filepath.Join(cache, "a.cache")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[8] = 99
			write(t, path, string(b))
		}, allBundles, "it is version 99, this program reads version 1"},
		{"cache files were swapped", func(t *testing.T, _, cache string) {
			rename(t, filepath.Join(cache, "a.cache"), filepath.Join(cache, "x.cache"))
			rename(t, filepath.Join(cache, "b.cache"), filepath.Join(cache, "a.cache"))
			rename(t, filepath.Join(cache, "x.cache"), filepath.Join(cache, "b.cache"))
		}, allBundles, "belongs in b.cache"},
		{"the cache is of another catalog", func(t *testing.T, _, cache string) {
			other, filled := t.TempDir(), filepath.Join(t.TempDir(), "cache")
			writeTree(t, other, map[string]string{"a/catalog.yaml": sampleB})
			if _, err := load(t, other, LoadOptions{CacheDir: filled}); err != nil {
				t.Fatal(err)
			}
			remove(t, cache)
			rename(t, filled, cache)
		}, allBundles, "cache reports digest of a/catalog.yaml"},
		{"the cache directory is empty", func(t *testing.T, _, cache string) {
			remove(t, cache)
			if err := os.Mkdir(cache, 0o755); err != nil {
				t.Fatal(err)
			}
		}, allBundles, "is not in the cache"},
		{"the cache directory is not there", func(t *testing.T, _, cache string) { remove(t, cache) },
			allBundles, "is not in the cache"},
	} {
		t.Run(test.name, func(t *testing.T) {
			catalog, cache := sampleDirs(t)
			test.change(t, catalog, cache)
			_, err := load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true})
			if !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(),
				strings.ReplaceAll(test.reason, `\"`, `"`)) {
				t.Errorf("enforced: %v, want %q", err, test.reason)
			}
			got, err := load(t, catalog, LoadOptions{CacheDir: cache})
			if err != nil || got.bundles != test.want {
				t.Fatalf("got %+v, %v, want %s", got, err, test.want)
			}
			if len(cacheFilesIfAny(cache)) > 0 && !strings.Contains(got.log, "building cache") {
				t.Errorf("the log says nothing: %s", got.log)
			}
			// The directory was updated.
			got, err = load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true})
			if err != nil || got.bundles != test.want || got.log != "" {
				t.Errorf("the second time: %+v, %v", got, err)
			}
		})
	}
}

// A file without blobs is in no cache file; the cache matches anyway.
func TestBlankFilesNeedNoCache(t *testing.T) {
	catalog, cache := sampleDirs(t)
	writeTree(t, catalog, map[string]string{".gitkeep": "", "a/blank.yaml": "---\n\n---\n"})
	got, err := load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true})
	if err != nil || got.bundles != allBundles || strings.Contains(got.log, "building cache") {
		t.Errorf("got %v, %v", got, err)
	}
	writeTree(t, catalog, map[string]string{"a/blank.yaml": "schema: example.notes\npackage: a\n"})
	if _, err := load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true}); !errors.Is(err, ErrIntegrity) {
		t.Errorf("a new blob: %v", err)
	}
}

func cacheFilesIfAny(dir string) []os.DirEntry {
	entries, _ := os.ReadDir(dir)
	return entries
}

func TestForeignCacheDirectoryIsLeftAlone(t *testing.T) {
	catalog, _ := sampleDirs(t)
	cache := t.TempDir()
	writeTree(t, cache, map[string]string{"notes/digest": "x", "digest": "y"})
	_, err := load(t, catalog, LoadOptions{CacheDir: cache, EnforceIntegrity: true})
	if !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(),
		"cache directory has unexpected contents: digest,notes") {
		t.Errorf("enforced: %v", err)
	}
	if _, err := load(t, catalog, LoadOptions{CacheDir: cache, MustWrite: true}); err == nil {
		t.Error("it was filled")
	}
	got, err := load(t, catalog, LoadOptions{CacheDir: cache})
	if err != nil || got.bundles != allBundles {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := cacheFiles(t, cache); !slices.Equal(got, []string{"digest", "notes"}) {
		t.Errorf("the directory was changed: %v", got)
	}
}

// TestCacheFromImage serves a catalog with its own cache from read-only file systems whose files have no random access.
func TestCacheFromImage(t *testing.T) {
	catalog := fstest.MapFS{"a/catalog.yaml": {Data: []byte(sampleA)}, "b/catalog.yaml": {Data: []byte(sampleB)}}
	cache := fstest.MapFS{}
	for name, text := range map[string]string{"a": sampleA, "b": sampleB} {
		digests, err := digestFiles(t.Context(), catalog, []string{name + "/catalog.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		source := digests[name+"/catalog.yaml"]
		source.Packages = 1
		file, err := EncodePackage(parse(t, text), nil, source)
		if err != nil {
			t.Fatal(err)
		}
		cache[CacheFileName(name)] = &fstest.MapFile{Data: file}
	}
	for _, changed := range []bool{false, true} {
		if changed {
			catalog["b/catalog.yaml"].Data = []byte(strings.ReplaceAll(sampleB, "only", "other"))
		}
		store, err := Load(t.Context(), FileSystem("image", catalog, plainFS{cache}),
			LoadOptions{EnforceIntegrity: !changed})
		if err != nil {
			t.Fatal(err)
		}
		c := newCatalog(store, 1<<20)
		want := "only"
		if changed {
			want = "other"
		}
		if c.byName["b"].channel(want) == nil {
			t.Errorf("changed %v: package b is not that of the catalog", changed)
		}
		c.retire()
	}
}

// plainFS hides random access to files.
type plainFS struct{ fs.FS }

func (p plainFS) Open(name string) (fs.File, error) {
	f, err := p.FS.Open(name)
	if d, ok := f.(fs.ReadDirFile); ok {
		return d, err
	}
	return struct{ fs.File }{f}, err
}

func TestLayoutsOfCatalogs(t *testing.T) {
	channel := strings.Index(sampleA, "---\nschema: olm.channel")
	bundle := strings.Index(sampleA, "---\nschema: olm.bundle")
	for name, files := range map[string]map[string]string{
		"one file":      {"catalog.yaml": sampleA + sampleB},
		"one directory": {"configs/a.yaml": sampleA, "configs/b.yaml": sampleB},
		"a package in several files": {"a/1.yaml": sampleA[:channel], "a/2.yaml": sampleA[channel:bundle],
			"a/3.yaml": sampleA[bundle:], "b.yaml": sampleB},
		"a package in several places": {"1.yaml": sampleA[:channel], "x/2.yaml": sampleA[channel:bundle] + sampleB,
			"y/3.yaml": sampleA[bundle:]},
		"packages across the same places": {"1.yaml": sampleA[:bundle] + sampleB, "2.yaml": sampleA[bundle:]},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
			writeTree(t, catalog, files)
			for _, o := range []LoadOptions{{}, {CacheDir: cache}, {CacheDir: cache, EnforceIntegrity: true}} {
				got, err := load(t, catalog, o)
				if err != nil || got.bundles != allBundles {
					t.Errorf("%+v: got %+v, %v", o, got, err)
				}
			}
			// A missing cache file is detected even if its blobs share a file with those of others.
			if err := os.Remove(filepath.Join(cache, "b.cache")); err != nil {
				t.Fatal(err)
			}
			got, err := load(t, catalog, LoadOptions{CacheDir: cache})
			if err != nil || got.bundles != allBundles {
				t.Errorf("without b.cache: got %+v, %v", got, err)
			}
		})
	}
}

func TestBrokenCatalogIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"syntax": {sampleB + "---\n{", "catalog.yaml"},
		"a broken rule": {strings.Replace(sampleB, "defaultChannel: only", "defaultChannel: x", 1),
			`process package "b": `},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
			writeTree(t, catalog, map[string]string{"b/catalog.yaml": test.text})
			_, err := load(t, catalog, LoadOptions{CacheDir: cache})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := cacheFilesIfAny(cache); len(got) > 0 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestLoadIsCancelled(t *testing.T) {
	catalog := t.TempDir()
	writeTree(t, catalog, map[string]string{"b/catalog.yaml": sampleB})
	src, err := Directory(catalog)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, src, LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEnforcedIntegrityNeedsCache(t *testing.T) {
	catalog := t.TempDir()
	writeTree(t, catalog, map[string]string{"b/catalog.yaml": sampleB})
	if _, err := load(t, catalog, LoadOptions{EnforceIntegrity: true}); !errors.Is(err, ErrNoCacheDir) {
		t.Errorf("got %v", err)
	}
}

func TestCacheFileNames(t *testing.T) {
	for pkg, want := range map[string]string{
		"etcd":    "etcd.cache",
		"a.b-c":   "a.b-c.cache",
		"":        "_.cache",
		"_":       "%5F.cache",
		"../x":    "%2E.%2Fx.cache",
		".hidden": "%2Ehidden.cache",
	} {
		if got := CacheFileName(pkg); got != want {
			t.Errorf("%q: %q, want %q", pkg, got, want)
		}
	}
	if long := CacheFileName(strings.Repeat("x", 300)); len(long) > 100 {
		t.Errorf("a long name is %d bytes", len(long))
	}
}
