package declcfg_test

import (
	"context"
	"io"
	"io/fs"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// benchCatalog is five packages of a real catalog.
func benchCatalog(b *testing.B) (fs.FS, int64) {
	b.Helper()
	fsys, err := declcfg.OpenDir("../testdata/fbc/mini")
	if err != nil {
		b.Fatal(err)
	}
	var size int64
	err = fs.WalkDir(fsys, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return fsys, size
}

func BenchmarkLoad(b *testing.B) {
	fsys, size := benchCatalog(b)
	for name, skeleton := range map[string]bool{"whole": false, "skeleton": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := declcfg.Load(context.Background(), fsys,
					declcfg.LoadOptions{Skeleton: skeleton}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	fsys, _ := benchCatalog(b)
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{Skeleton: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	fsys, size := benchCatalog(b)
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Write(io.Discard, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
