package atomicfs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// listing returns the entries of a directory with their modes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		out = append(out, rel+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

func sampleTree() fstest.MapFS {
	return fstest.MapFS{
		"manifests/a.yaml": {Data: []byte("a"), Mode: 0o4755}, "manifests/deep/er/b": {Data: []byte("b")},
		"metadata": {Mode: fs.ModeDir | 0o700}, "top": {Data: []byte("t"), Mode: 0o400},
	}
}

const sampleListing = "manifests drwxr-xr-x\nmanifests/a.yaml -rw-r--r--\nmanifests/deep " +
	"drwxr-xr-x\nmanifests/deep/er drwxr-xr-x\nmanifests/deep/er/b -rw-r--r--\nmetadata drwxr-xr-x\ntop -rw-r--r--"

func TestWriteTree(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) string{
		"new":          func(_ *testing.T, dir string) string { return filepath.Join(dir, "x", "y") },
		"empty":        func(_ *testing.T, dir string) string { return dir },
		"with a slash": func(_ *testing.T, dir string) string { return filepath.Join(dir, "new") + "/" },
		"working dir":  func(t *testing.T, dir string) string { t.Chdir(dir); return "." },
		"what was there": func(t *testing.T, dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "zz"), []byte("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target := prepare(t, dir)
			if err := atomicfs.WriteTree(t.Context(), target, sampleTree()); err != nil {
				t.Fatal(err)
			}
			want := ". drwxr-xr-x\n" + sampleListing
			if name == "what was there" {
				want += "\nzz -rw-r--r--"
			}
			if got := listing(t, target); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if text, err := os.ReadFile(filepath.Join(target, "manifests/a.yaml")); err != nil || string(text) != "a" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestWriteTreeRefuses(t *testing.T) {
	outside := t.TempDir()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		prepare func(dir string) string
		fsys    fs.FS
		want    error
	}{
		"an entry that is there": {t.Context(), func(dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "metadata"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, sampleTree(), fs.ErrExist},
		"a link as the target": {t.Context(), func(dir string) string {
			if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "link")
		}, sampleTree(), nil},
		"a link as an entry": {t.Context(), func(dir string) string {
			if err := os.Symlink(outside, filepath.Join(dir, "manifests")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, sampleTree(), fs.ErrExist},
		"a file as the target": {t.Context(), func(dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "f")
		}, sampleTree(), nil},
		"a device": {t.Context(), func(dir string) string { return dir },
			fstest.MapFS{"a": {}, "b": {Mode: fs.ModeDevice}}, nil},
		"a device, new": {t.Context(), func(dir string) string { return filepath.Join(dir, "x", "y") },
			fstest.MapFS{"a": {}, "b": {Mode: fs.ModeDevice}}, nil},
		"cancelled": {cancelled, func(dir string) string { return dir }, sampleTree(),
			context.Canceled},
		"a name of our own": {t.Context(), func(dir string) string { return dir },
			fstest.MapFS{".bindery-tree.bindery-x": {}}, nil},
		"the name of another writer's": {t.Context(), func(dir string) string { return dir },
			fstest.MapFS{".etcd.svg.bindery-x": {}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "DIR")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			target := c.prepare(dir)
			before := listing(t, dir)
			err := atomicfs.WriteTree(c.ctx, target, c.fsys)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			if left, _ := os.ReadDir(outside); len(left) > 0 {
				t.Errorf("written outside: %v", slices.Clone(left))
			}
		})
	}
}
