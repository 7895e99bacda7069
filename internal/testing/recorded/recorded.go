// Package recorded gives tests the databases and catalogs that opm made, and opm's answers for them.
//
// The collection is testdata/recorded.tar.zst, which hack/recorded.sh packs. It is unpacked once to the user's cache
// directory. A representative part of it is in testdata as files.
package recorded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Collection is a directory with databases in db/ and opm's answers in golden/.
type Collection string

// All returns the whole collection.
func All(t testing.TB) Collection {
	t.Helper()
	dir, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	return Collection(dir)
}

// Part returns the part of the collection that is in testdata as files.
func Part(t testing.TB) Collection {
	t.Helper()
	return Collection(filepath.Join(SourceRoot(), "testdata", "indexes"))
}

// Databases lists the names of the databases, without their extensions.
func (c Collection) Databases(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(string(c), "db"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".zst"), ".db"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Database copies a database to a temporary directory of the test and returns its path.
func (c Collection) Database(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".db")
	if err := os.WriteFile(path, c.File(t, "db/"+name+".db"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Has reports whether the collection has a file, compressed or not.
func (c Collection) Has(name string) bool {
	for _, suffix := range []string{"", ".zst"} {
		if _, err := os.Stat(filepath.Join(string(c), name+suffix)); err == nil {
			return true
		}
	}
	return false
}

// File returns the content of a file, which may be compressed as name.zst.
func (c Collection) File(t testing.TB, name string) []byte {
	t.Helper()
	path := filepath.Join(string(c), name)
	if data, err := os.ReadFile(path); err == nil {
		return data
	}
	data, err := os.ReadFile(path + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if data, err = dec.DecodeAll(data, nil); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}
