package sqlite_test

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// create writes a catalog to a new database and returns its path.
func create(t testing.TB, blobs iter.Seq2[declcfg.Blob, error], o sqlite.WriteOptions) (string, *sqlite.Written) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index.db")
	written, err := sqlite.Create(context.Background(), path, blobs, o)
	if err != nil {
		t.Fatal(err)
	}
	return path, written
}

// sameCatalog fails if two catalogs differ in meaning.
func sameCatalog(t testing.TB, old, after *declcfg.Catalog, only ...diff.Section) {
	t.Helper()
	report, err := diff.Compare(old.Blobs(), after.Blobs(), diff.Options{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Same {
		var out bytes.Buffer
		if err := report.WriteText(&out, diff.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		t.Errorf("the catalogs differ:\n%.3000s", text)
	}
}

func sameFileContent(t testing.TB, a, b string) {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same catalog made other bytes")
	}
}

// rowsInOrder returns the rows of a query as lines.
func rowsInOrder(t testing.TB, path, query string) string {
	t.Helper()
	rows, err := writer(t, path, "mode=ro").Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values := make([]string, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Join(values, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func testRoundTrip(t *testing.T, c recorded.Collection) {
	for _, name := range c.Databases(t) {
		if _, ok := broken[name]; ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, _, err := read(t, c.Database(t, name), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			path, written := create(t, first.Blobs(), sqlite.WriteOptions{})
			for _, f := range written.Findings {
				t.Logf("%+v", f)
			}
			second, _, err := read(t, path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			sameCatalog(t, first, second)
			again, _ := create(t, first.Blobs(), sqlite.WriteOptions{})
			sameFileContent(t, path, again)
		})
	}
}

func TestRoundTripRecorded(t *testing.T)    { testRoundTrip(t, recorded.Part(t)) }
func TestRoundTripAllRecorded(t *testing.T) { testRoundTrip(t, recorded.All(t)) }
