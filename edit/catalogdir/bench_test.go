package catalogdir_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// benchCatalog copies five packages of a real catalog, or another catalog.
func benchCatalog(b *testing.B) (dir string, size int64) {
	from := os.Getenv("BINDERY_BENCH_CATALOG")
	if from == "" {
		from = "../../testdata/fbc/mini"
	}
	dir = filepath.Join(b.TempDir(), "catalog")
	check(b, os.CopyFS(dir, os.DirFS(from)))
	check(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			info, err = e.Info()
			size += info.Size()
		}
		return err
	}))
	return dir, size
}

// BenchmarkSkeleton measures loading the skeleton only, for comparison with the others.
func BenchmarkSkeleton(b *testing.B) {
	dir, size := benchCatalog(b)
	fsys, err := declcfg.OpenDir(dir)
	check(b, err)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		_, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{Skeleton: true})
		check(b, err)
	}
}

// BenchmarkOnePackage changes the smallest package: opens, loads, replaces and closes.
func BenchmarkOnePackage(b *testing.B) {
	dir, size := benchCatalog(b)
	benchmarkEdit(b, dir, size, 1)
}

// BenchmarkTwoPackages changes two packages, which needs a journal.
func BenchmarkTwoPackages(b *testing.B) {
	dir, size := benchCatalog(b)
	benchmarkEdit(b, dir, size, 2)
}

// BenchmarkOneFile edits a catalog in a single file.
func BenchmarkOneFile(b *testing.B) {
	dir, size := benchCatalog(b)
	c := load(b, dir)
	check(b, os.RemoveAll(dir))
	check(b, os.Mkdir(dir, 0o755))
	var text strings.Builder
	check(b, c.Write(&text, declcfg.FormatYAML))
	write(b, dir, map[string]string{"catalog.yaml": text.String()})
	benchmarkEdit(b, dir, size, 1)
}

func benchmarkEdit(b *testing.B, dir string, size int64, packages int) {
	var names []string
	c := load(b, dir)
	c.Sort()
	for _, p := range c.Packages[:packages] {
		names = append(names, p.Name)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		_, err := edit(b, dir, names, func(c *declcfg.Catalog) {
			for i := range c.Packages {
				for _, name := range names {
					if c.Packages[i].Name == name {
						c.Packages[i].Description += "."
					}
				}
			}
		})
		check(b, err)
	}
}
