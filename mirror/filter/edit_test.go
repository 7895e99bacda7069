package filter_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// realCatalog returns the files of a whole catalog.
func realCatalog(t *testing.T) fstest.MapFS {
	t.Helper()
	packed, err := os.ReadFile("../../testdata/real/catalog-v4.22.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := fstest.MapFS{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "./")] = &fstest.MapFile{Data: data}
	}
}

// A result is an edit of a catalog: what is kept comes out of it with everything that the source has of it, and is
// valid.
func TestResultIsAnEdit(t *testing.T) {
	ctx := context.Background()
	files := realCatalog(t)
	whole, err := declcfg.Load(ctx, files, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]imageset.Operator{"heads": {}, "a package": {Packages: []imageset.Package{
		{Name: whole.Packages[3].Name}}}} {
		t.Run(name, func(t *testing.T) {
			source, err := change.FromFS(ctx, files, change.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			o := filter.Options{AutoDefaultChannel: true}
			var want *filter.Result
			blobs, _, err := source.Apply(ctx, change.Edit{Whole: []string{}, Scope: o.Scope(op),
				Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
					r, err := o.Apply(s.Catalog, op)
					if err != nil {
						return nil, nil, err
					}
					want = r
					return r.Catalog, r.Account, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			got := &declcfg.Catalog{}
			for b, err := range blobs {
				if err != nil {
					t.Fatal(err)
				}
				got.Add(b)
			}
			if err := got.Validate(); err != nil || want.Refused() {
				t.Errorf("%v, %v", err, want.Problems)
			}
			if len(got.Bundles) != len(want.Catalog.Bundles) || len(got.Packages) != len(want.Kept) {
				t.Errorf("got %d packages, %d bundles", len(got.Packages), len(got.Bundles))
			}
			for _, b := range got.Bundles {
				i := slices.IndexFunc(whole.Bundles,
					func(w declcfg.Bundle) bool { return w.Package == b.Package && w.Name == b.Name })
				if len(b.Properties) != len(whole.Bundles[i].Properties) || !slices.EqualFunc(b.Properties,
					whole.Bundles[i].Properties, func(x, y declcfg.Property) bool {
						return x.Type == y.Type && bytes.Equal(x.Value, y.Value)
					}) {
					t.Errorf("%s is not complete", b.Name)
				}
			}
		})
	}
}
