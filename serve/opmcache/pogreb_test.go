package opmcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akrylysov/pogreb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// The digest that opm recorded for its cache of testdata/fbc/mini, and the size of the directory, in which each of
// three directories counts 4096 bytes.
const (
	recordedDigest = "6639a1c7bae1a487"
	recordedSize   = 2208758 - 3*4096
)

const mini = "../../testdata/fbc/mini"

// pogrebOf builds the cache, unpacks it, and returns the root of the image.
func pogrebOf(t testing.TB, all []Package) string {
	t.Helper()
	tmp := t.TempDir()
	es, err := PogrebTop(t.Context(), tmp, all)
	if err != nil {
		t.Fatal(err)
	}
	root := unpack(t, filesOf(all), es)
	leftOver(t, tmp)
	return root
}

func check(t testing.TB, root string) (Report, error) {
	t.Helper()
	return Check(t.Context(), os.DirFS(filepath.Join(root, configsDir)), os.DirFS(filepath.Join(root, Dir)))
}

func TestPogrebIsWhatOPMMakes(t *testing.T) {
	root := pogrebOf(t, packagesOf(t, mini))
	var size int64
	err := filepath.Walk(filepath.Join(root, Dir), func(_ string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil || size != recordedSize {
		t.Errorf("the files have %d bytes, opm's have %d (%v)", size, recordedSize, err)
	}
	r, err := check(t, root)
	if err != nil || r.Digest != recordedDigest || r.Computed != recordedDigest || !r.Valid() {
		t.Errorf("got %+v, %v; opm has %s", r, err, recordedDigest)
	}
}

// open opens a database with opm's library.
func open(t testing.TB, dir string) *pogreb.DB {
	t.Helper()
	db, err := pogreb.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestPogrebEntries(t *testing.T) {
	root := pogrebOf(t, samples())
	if r, err := check(t, root); err != nil || !r.Valid() {
		t.Fatalf("%+v, %v", r, err)
	}
	db := open(t, filepath.Join(root, Dir, opmformat.PogrebDir, "db"))
	want := []string{
		"bundles/a-b/only/a-b.v1.0.0", "bundles/a/beta/a.v1.1.0", "bundles/a/stable/a.v1.0.0",
		"bundles/a/stable/a.v1.1.0",
		"metas/example.all/", "metas/example.notes/a", "packages.json",
	}
	if db.Count() != uint32(len(want)) {
		t.Errorf("%d entries, want %d", db.Count(), len(want))
	}
	value := func(key string) []byte {
		v, err := db.Get([]byte(key))
		if err != nil || v == nil {
			t.Fatalf("%s: %v, %v", key, v, err)
		}
		return v
	}
	for _, key := range want {
		value(key)
	}
	b := &api.Bundle{}
	if err := proto.Unmarshal(value("bundles/a/stable/a.v1.1.0"), b); err != nil {
		t.Fatal(err)
	}
	if b.Replaces != "a.v1.0.0" || !slices.Equal(b.Skips, []string{"a.v1.0.1", "a.v1.0.0"}) ||
		b.SkipRange != ">=1.0.0 <1.1.0" ||
		b.BundlePath != "example.test/a:v1.1.0" || len(b.Object) != 1 || !strings.Contains(b.CsvJson,
		`"displayName":"A"`) {
		t.Errorf("got %v", b)
	}
	if err := proto.Unmarshal(value("bundles/a/stable/a.v1.0.0"), b); err != nil {
		t.Fatal(err)
	}
	rounded := `{"large":12345678901234567000,"one":1,"small":1.5}`
	if !slices.ContainsFunc(b.Properties, func(p *api.Property) bool { return p.Value == rounded }) ||
		b.Deprecation.GetMessage() != "v1.0.0 goes" {
		t.Errorf("got %v", b)
	}
	var names []string
	for rest := value("metas/example.notes/a"); len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		s := &structpb.Struct{}
		if err := proto.Unmarshal(rest[4:4+n], s); err != nil {
			t.Fatal(err)
		}
		names, rest = append(names, s.Fields["name"].GetStringValue()), rest[4+n:]
	}
	if !slices.Equal(names, []string{"one", "two", "one"}) {
		t.Errorf("custom blobs %v", names)
	}
	const index = `{"a":{"name":"a","description":"About \u003ca\u003e.","icon":{"base64data":"iVBORw0KGgo=","mediatype":"image/png"},"defaultChannel":"stable",` +
		`"Channels":{"beta":{"Name":"beta","Head":"a.v1.1.0","Bundles":{"a.v1.1.0":{"package":"a","channel":"beta","name":"a.v1.1.0","replaces":"","skips":["a.v1.0.1"]}},"deprecation":{"message":"beta goes"}},` +
		`"stable":{"Name":"stable","Head":"a.v1.1.0","Bundles":{"a.v1.0.0":{"package":"a","channel":"stable","name":"a.v1.0.0","replaces":"","skips":null},` +
		`"a.v1.1.0":{"package":"a","channel":"stable","name":"a.v1.1.0","replaces":"a.v1.0.0","skips":["a.v1.0.1","a.v1.0.0"]}}}},"deprecation":{"message":"a goes"}},` +
		`"a-b":{"name":"a-b","description":"","icon":null,"defaultChannel":"only","Channels":{"only":{"Name":"only","Head":"a-b.v1.0.0",` +
		`"Bundles":{"a-b.v1.0.0":{"package":"a-b","channel":"only","name":"a-b.v1.0.0","replaces":"","skips":null}}}}}}`
	if got := string(value("packages.json")); got != index {
		t.Errorf("index\n%s\nwant\n%s", got, index)
	}
}

func TestPogrebBytesAreAFunctionOfTheCatalog(t *testing.T) {
	all := packagesOf(t, mini)
	first := pogrebOf(t, all)
	slices.Reverse(all)
	second := pogrebOf(t, all)
	same(t, filepath.Join(first, Dir), filepath.Join(second, Dir))
}

// same compares two directory trees including modes.
func same(t testing.TB, a, b string) {
	t.Helper()
	seen := 0
	err := filepath.Walk(a, func(name string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(a, name)
		if err != nil {
			return err
		}
		other, err := os.Stat(filepath.Join(b, rel))
		if err != nil {
			return err
		}
		if other.Mode() != info.Mode() {
			t.Errorf("%s has the modes %v and %v", rel, info.Mode(), other.Mode())
		}
		if info.IsDir() {
			return nil
		}
		seen++
		x, err := os.ReadFile(name)
		y, other2 := os.ReadFile(filepath.Join(b, rel))
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs", rel)
		}
		return errors.Join(err, other2)
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files compared: %v", seen, err)
	}
}

// TestPogrebTableIsTheLibrarys compares databases of many entries with those of the library: the library finds all
// entries, and files have the same sizes, apart from the effect of its random seed.
func TestPogrebTableIsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 21, 22, 31, 44, 700, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d, err := newDatabase(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			theirs := filepath.Join(t.TempDir(), "db")
			lib, err := pogreb.Open(theirs, nil)
			if err != nil {
				t.Fatal(err)
			}
			values := map[string][]byte{}
			for i := range n {
				key := fmt.Sprintf("bundles/%d/%x", i, rng.Uint64())
				value := bytes.Repeat([]byte{byte(i)}, rng.IntN(50))
				values[key] = value
				if err := errors.Join(d.appendEntry([]byte(key), value), lib.Put([]byte(key), value)); err != nil {
					t.Fatal(err)
				}
			}
			if err := lib.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := d.files()
			if err != nil {
				t.Fatal(err)
			}
			sizes := map[string]int64{}
			for i := range files {
				sizes[files[i].Name] = files[i].Size
				files[i].Mode = 0o600
			}
			for name, size := range sizes {
				info, err := os.Stat(filepath.Join(theirs, name))
				// The seed determines how many entries overflow their bucket, and its own encoded length.
				if err != nil ||
					info.Size() != size && name != "overflow.pix" && name != "db.pmt" && name != "index.pmt" {
					t.Errorf("%s has %d bytes, the library's %v, %v", name, size, info, err)
				}
			}
			db := open(t, unpack(t, files))
			if db.Count() != uint32(n) {
				t.Errorf("%d entries, want %d", db.Count(), n)
			}
			for key, value := range values {
				got, err := db.Get([]byte(key))
				if err != nil || !bytes.Equal(got, value) {
					t.Fatalf("%s: %q, %v", key, got, err)
				}
			}
			// The library can extend the database like one of its own.
			if err := db.Put([]byte("new"), []byte("value")); err != nil {
				t.Error(err)
			}
			if got, err := db.Get([]byte("new")); string(got) != "value" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestPogrebCanBeWrittenByTheGroup(t *testing.T) {
	es, err := PogrebTop(t.Context(), t.TempDir(), samples())
	if err != nil {
		t.Fatal(err)
	}
	checkModes(t, es, 0o775, 0o664)
}

// checkModes checks the modes of a cache, and that its parent directory stays writable for all users.
func checkModes(t *testing.T, es []layers.Entry, dir, file fs.FileMode) {
	t.Helper()
	for _, e := range es {
		want := file
		switch {
		case e.Name == "tmp":
			want = 0o777 | fs.ModeSticky
		case e.Kind == layers.KindDir:
			want = dir
		}
		if e.Mode != want {
			t.Errorf("%s has mode %v, want %v", e.Name, e.Mode, want)
		}
	}
	if es[0].Name != "tmp" {
		t.Errorf("no entry for /tmp")
	}
}
