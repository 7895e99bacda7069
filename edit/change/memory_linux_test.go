package change_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/race"
	"github.com/operator-bindery/bindery/sqlite"
)

// The memory of an edit does not grow with the manifests, neither those of unchanged packages nor those of changed
// ones.
func TestMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector a program takes several times the memory")
	}
	t.Run("made up", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "index.db")
		if _, err := sqlite.Create(context.Background(), path, madeUp(12, 400), sqlite.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		testMemory(t, path, 64,
			[][]string{{"rm", "no-such-package"}, {"touch", "p001"}, {"add", "p001", "99.0.0"}, {"rm", "p001"}})
	})
	t.Run("real", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "index.db")
		unpack(t, "../../testdata/real/large.db.zst", path)
		testMemory(t, path, 120, [][]string{{"add", "jaeger", "99.0.0"}}) // the largest package
	})
}

// testMemory edits a database and the directory migrated from it within an amount of memory in MB.
func testMemory(t *testing.T, path string, most int64, verbs [][]string) {
	dir := filepath.Join(t.TempDir(), "catalog")
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Reuse: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := declcfg.WriteFS(context.Background(), dir, declcfg.FormatJSON,
		db.Blobs(context.Background())); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{path, dir} {
		for _, verb := range verbs {
			cmd := job(at, verb...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			peak := peakOf(t, string(out))
			t.Logf("%s: %v: %d MB in %v", filepath.Base(at), verb, peak,
				cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			if peak > most {
				t.Errorf("%s: %v: %d MB of memory", filepath.Base(at), verb, peak)
			}
		}
	}
}

// peakOf reads the peak memory in MB that a job printed. The peak that the system reports for an exited child includes
// the memory of its parent.
func peakOf(t *testing.T, out string) int64 {
	t.Helper()
	var kilobytes int64
	_, rest, _ := strings.Cut(out, "VmHWM:")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return kilobytes >> 10
}

// madeUp yields a catalog of packages of ten bundles, each with a manifest of some kilobytes.
func madeUp(packages, kilobytes int) iter.Seq2[declcfg.Blob, error] {
	const bundles = 10
	return func(yield func(declcfg.Blob, error) bool) {
		for p := range packages {
			pkg := fmt.Sprintf("p%03d", p)
			if !yield(&declcfg.Package{Name: pkg, DefaultChannel: "a"}, nil) {
				return
			}
			c := &declcfg.Channel{Name: "a", Package: pkg}
			for n := range bundles {
				e := declcfg.ChannelEntry{Name: fmt.Sprintf("%s.v1.0.%d", pkg, n)}
				if n > 0 {
					e.Replaces = fmt.Sprintf("%s.v1.0.%d", pkg, n-1)
				}
				c.Entries = append(c.Entries, e)
			}
			if !yield(c, nil) {
				return
			}
			for n := range bundles {
				b := &declcfg.Bundle{Name: fmt.Sprintf("%s.v1.0.%d", pkg, n), Package: pkg,
					Image: fmt.Sprintf("registry.example/%s:%d", pkg, n), HasObjects: true}
				b.Properties = []declcfg.Property{
					{Type: declcfg.PropertyPackage,
						Value: fmt.Appendf(nil, `{"packageName":%q,"version":"1.0.%d"}`, pkg, n)},
					declcfg.NewBundleObject(
						[]byte(`{"kind":"ConfigMap","data":{"x":"` + strings.Repeat("0123456789abcdef",
							kilobytes*64) + `"}}`)),
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// unpack writes a decompressed file.
func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	w, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.WriteTo(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
