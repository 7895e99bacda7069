package opmcache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/serve"
)

// A cache that matches its catalog stays as it is, and any other one is replaced.
func TestRefresh(t *testing.T) {
	first := os.DirFS("../../testdata/fbc/mini")
	second := fstest.MapFS{"a.yaml": {Data: []byte(catalogOf("stable", "a.v1", ""))}}
	for _, format := range []string{serve.FormatPogreb, serve.FormatJSON} {
		t.Run(format, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			valid := func(catalog fs.FS) bool {
				t.Helper()
				report, err := Check(t.Context(), catalog, os.DirFS(dir))
				if err != nil {
					t.Fatal(err)
				}
				return report.Valid()
			}
			refresh := func(ctx context.Context, catalog fs.FS) error {
				return Refresh(ctx, catalog, dir, format)
			}
			if err := refresh(t.Context(), first); err != nil || !valid(first) {
				t.Fatalf("the first cache: %v", err)
			}
			before := state(t, dir)
			if err := refresh(t.Context(), first); err != nil || state(t, dir) != before {
				t.Errorf("a valid cache was written again: %v", err)
			}
			if err := refresh(t.Context(), second); err != nil || !valid(second) || valid(first) {
				t.Fatalf("the cache of another catalog: %v", err)
			}
			before = state(t, dir)
			ended, end := context.WithCancel(t.Context())
			end()
			invalid := fstest.MapFS{"a.yaml": {Data: []byte("schema: olm.package\nname: a\ndefaultChannel: x\n")}}
			for what, err := range map[string]error{
				"a canceled refresh":  refresh(ended, first),
				"an invalid catalog":  refresh(t.Context(), invalid),
				"a file that is none": refresh(t.Context(), fstest.MapFS{"a.json": {Data: []byte("{")}}),
			} {
				if err == nil || state(t, dir) != before || !valid(second) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := refresh(ended, first); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// A directory that has a cache in one format gets a valid cache in the other format.
func TestRefreshToAnotherFormat(t *testing.T) {
	catalog, dir := os.DirFS("../../testdata/fbc/mini"), t.TempDir()
	for _, format := range []string{serve.FormatJSON, serve.FormatPogreb, serve.FormatJSON} {
		if err := Refresh(t.Context(), catalog, dir, format); err != nil {
			t.Fatal(err)
		}
		report, err := Check(t.Context(), catalog, os.DirFS(dir))
		if err != nil || !report.Valid() {
			t.Errorf("%s: %+v, %v", format, report, err)
		}
	}
}

// state returns the names, sizes and times of all files.
func state(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		all.WriteString(path + fs.FormatFileInfo(info) + info.ModTime().String() + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
