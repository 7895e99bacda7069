package opmcache

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/layers"
)

// jsonOf builds the cache of packages in layers, unpacks it, and returns the root of the image.
func jsonOf(t testing.TB, all []Package) string {
	t.Helper()
	lists := [][]layers.Entry{filesOf(all)}
	for _, p := range all {
		c, err := p.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		es, err := JSONEntries(c)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, es)
	}
	tmp := t.TempDir()
	top, err := JSONTop(t.Context(), tmp, all)
	if err != nil {
		t.Fatal(err)
	}
	leftOver(t, tmp)
	return unpack(t, append(lists, top)...)
}

func TestJSONDigestIsOfTheFilesAsTheyLie(t *testing.T) {
	for name, all := range map[string][]Package{"real": packagesOf(t, mini), "samples": samples(), "empty": nil} {
		t.Run(name, func(t *testing.T) {
			root := jsonOf(t, all)
			stored, err := os.ReadFile(filepath.Join(root, Dir, "digest"))
			if err != nil {
				t.Fatal(err)
			}
			if want := describedDigest(t, filepath.Join(root, "configs"),
				filepath.Join(root, Dir, "cache")); string(stored) != want {
				t.Errorf("the digest is %s, the files have %s", stored, want)
			}
			if r, err := check(t, root); err != nil || !r.Valid() || r.Digest != string(stored) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestJSONFiles(t *testing.T) {
	root := jsonOf(t, samples())
	cache := filepath.Join(root, Dir, "cache")
	var names []string
	err := fs.WalkDir(os.DirFS(cache), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		if dir, _, ok := strings.Cut(n, ".json"); ok && strings.HasPrefix(n, "metas/") {
			at := strings.LastIndex(dir, "/")
			if len(dir[at+1:]) != 16 || strings.Trim(dir[at+1:], "0123456789abcdef") != "" {
				t.Errorf("%s has no name of a digest", n)
			}
			names[i] = dir[:at] + "/*.json"
		}
	}
	want := []string{
		"a-b_only_a-b.v1.0.0.json", "a_beta_a.v1.1.0.json", "a_stable_a.v1.0.0.json", "a_stable_a.v1.1.0.json",
		"metas/example.all/*.json", "metas/example.notes/a/*.json", "metas/example.notes/a/*.json", "packages.json",
	}
	if !slices.Equal(names, want) {
		t.Errorf("files %v\nwant  %v", names, want)
	}
	text, err := os.ReadFile(filepath.Join(cache, "a_stable_a.v1.0.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	b := &api.Bundle{}
	if err := json.Unmarshal(text, b); err != nil || b.CsvName != "a.v1.0.0" || b.ChannelName != "stable" ||
		len(b.Object) != 1 || b.Deprecation.GetMessage() != "v1.0.0 goes" {
		t.Errorf("got %v, %v", b, err)
	}
	if !strings.Contains(string(text), `{\"large\":12345678901234567000,\"one\":1,\"small\":1.5}`) {
		t.Errorf("numbers are not those that opm reads: %s", text)
	}
}

func TestJSONCanBeReadByAll(t *testing.T) {
	all := samples()
	c, err := all[0].load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	es, err := JSONEntries(c)
	if err != nil {
		t.Fatal(err)
	}
	checkModes(t, es, 0o755, 0o644)
	top, err := JSONTop(t.Context(), t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	checkModes(t, top, 0o755, 0o644)
}

func TestJSONIsAFunctionOfTheCatalog(t *testing.T) {
	all := packagesOf(t, mini)
	first := jsonOf(t, all)
	slices.Reverse(all)
	same(t, filepath.Join(first, Dir), filepath.Join(jsonOf(t, all), Dir))
}

// TestLargePackagesAreMadeTwice compares entries held in memory with those encoded again when they are read.
func TestLargePackagesAreMadeTwice(t *testing.T) {
	for _, p := range append(packagesOf(t, mini), samples()...) {
		c, err := p.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := jsonEntries(c, keptText)
		if err != nil {
			t.Fatal(err)
		}
		made, err := jsonEntries(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Join(unpack(t, kept), Dir), filepath.Join(unpack(t, made), Dir))
	}
}
