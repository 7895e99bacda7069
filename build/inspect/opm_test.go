package inspect_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
)

// A cache of opm's is valid if opm would accept it and it matches the catalog.
func TestCachesOfOPM(t *testing.T) {
	in := sample()
	for name, f := range in { // opm supports no slashes in schema names
		in[name] = file(strings.ReplaceAll(string(f.Data), "example.com/", "example.com."))
	}
	for _, format := range []inspect.CacheFormat{inspect.JSONCache, inspect.PogrebCache} {
		opm := build.ServeCacheJSON
		if format == inspect.PogrebCache {
			opm = build.ServeCachePogreb
		}
		t.Run(string(format), func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "out")
			write(t, in, cached(build.Options{}, build.ServeCacheNative, opm), "oci:"+at+":v1")
			r := examine(t, "oci:"+at+":v1")
			if !r.Proof.Same || r.Proof.Rebuilt != len(r.Layers) {
				t.Errorf("%+v", r.Proof)
			}
			for _, want := range []inspect.Cache{{Path: "/cache", Format: inspect.NativeCache,
				State: inspect.CacheValid}, {Path: "/tmp/cache", Format: format, State: inspect.CacheValid}} {
				found := false
				for _, k := range r.Caches {
					found = found || k == want
				}
				if !found {
					t.Errorf("no %+v among %+v", want, r.Caches)
				}
			}
			digest, content := "tmp/cache/digest", "tmp/cache/cache/foo_stable_foo.v1.0.0.json"
			if format == inspect.PogrebCache {
				digest, content = "tmp/cache/pogreb.v1/digest", "tmp/cache/pogreb.v1/db/00000-1.psg"
			}
			for name, change := range map[string]func(f *forgery){
				"digest":  func(f *forgery) { _, e := f.entry(digest); e.content[0] ^= 1 },
				"content": func(f *forgery) { _, e := f.entry(content); e.content[len(e.content)/2] ^= 1 },
				"missing": func(f *forgery) { f.remove(digest) },
			} {
				t.Run(name, func(t *testing.T) {
					f := takeApart(t, at)
					change(f)
					r := examine(t, f.layout(nil))
					expect(t, r, inspect.AboutCache, "tmp/cache")
					for _, k := range r.Caches {
						if k.Path == "/tmp/cache" && k.State == inspect.CacheValid {
							t.Errorf("%+v", k)
						}
					}
				})
			}
		})
	}
}
