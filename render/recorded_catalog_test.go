package render_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render"
)

// Five packages of a real catalog are rendered with opm's bytes, at every level and in both formats, and written per
// package as opm migrated them.
func TestRecordedCatalog(t *testing.T) {
	all := string(recorded.All(t))
	catalog, golden := filepath.Join(all, "fbc", "mini"), filepath.Join(all, "golden-fbc", "mini")
	for name, c := range map[string]struct {
		format declcfg.Format
		level  edit.Level
	}{
		"render.json":         {declcfg.FormatJSON, ""},
		"render.yaml":         {declcfg.FormatYAML, ""},
		"render-none.yaml":    {declcfg.FormatYAML, "none"},
		"render-csvmeta.yaml": {declcfg.FormatYAML, "bundle-object-to-csv-metadata"},
		"render-migrate.json": {declcfg.FormatJSON, edit.LevelLatest},
	} {
		t.Run(name, func(t *testing.T) {
			blobs, err := render.Options{Level: c.level}.Render(t.Context(), catalog)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := c.format.Write(&got, blobs); err != nil {
				t.Fatal(err)
			}
			if want := unpack(t, filepath.Join(golden, name+".zst")); !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes differ from opm's %d", got.Len(), len(want))
			}
		})
	}
	t.Run("migrate", func(t *testing.T) {
		blobs, err := render.Options{}.Render(t.Context(), catalog)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "migrate.d")
		if err := declcfg.WriteFS(t.Context(), dir, declcfg.FormatYAML, blobs); err != nil {
			t.Fatal(err)
		}
		files := 0
		for r := tar.NewReader(bytes.NewReader(unpack(t, filepath.Join(golden, "migrate.d.tar.zst")))); ; files++ {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag != tar.TypeReg {
				continue
			}
			want, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(filepath.Dir(dir), filepath.FromSlash(h.Name)))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs from opm's: %v", h.Name, err)
			}
		}
		if files < 5 {
			t.Errorf("only %d entries were compared", files)
		}
	})
}

func unpack(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
