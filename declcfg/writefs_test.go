package declcfg_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/guard"
)

func TestWriteFSLayout(t *testing.T) {
	c := small()
	c.Others = []declcfg.Meta{{Schema: "x", Blob: []byte(`{"schema":"x"}`)}}
	for name, prepare := range map[string]func(dir string) error{
		"absent":         func(string) error { return nil },
		"empty":          func(dir string) error { return os.Mkdir(dir, 0o755) },
		"parents absent": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if name == "parents absent" {
				dir = filepath.Join(dir, "deep", "er")
			}
			must(t, prepare(dir))
			must(t, declcfg.WriteFS(context.Background(), dir, declcfg.FormatYAML, c.Blobs()))
			for _, f := range []string{"foo/catalog.yaml", "catalog.yaml"} {
				if !exists(filepath.Join(dir, f)) {
					t.Errorf("%s is missing", f)
				}
			}
			checkNoLeftovers(t, filepath.Dir(dir), filepath.Base(dir))
		})
	}
}

func TestWriteFSIsAllOrNothing(t *testing.T) {
	c := small()
	failing := func(err error) iter.Seq2[declcfg.Blob, error] {
		return func(yield func(declcfg.Blob, error) bool) {
			if yield(&c.Packages[0], nil) {
				yield(nil, err)
			}
		}
	}
	broken := errors.New("broken source")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	hostile := func(name string) iter.Seq2[declcfg.Blob, error] {
		return (&declcfg.Catalog{Packages: []declcfg.Package{{Name: "good"}, {Name: name}}}).Blobs()
	}
	tests := []struct {
		name  string
		ctx   context.Context
		blobs iter.Seq2[declcfg.Blob, error]
		want  string
	}{
		{"the source fails", context.Background(), failing(broken), "broken source"},
		{"cancelled", cancelled, c.Blobs(), "canceled"},
		{"a package called ..", context.Background(), hostile(".."), "must be a single local path element"},
		{"a package with a slash", context.Background(), hostile("a/b"), "must be a single local path element"},
		{"a package with a backslash", context.Background(), hostile(`a\b`), "must be a single local path element"},
		{"a package with an absolute path", context.Background(), hostile("/tmp/x"),
			"must be a single local path element"},
		{"a package of dots", context.Background(), hostile("."), "must be a single local path element"},
		{"a package whose name is too long", context.Background(), hostile(strings.Repeat("a", 300)), "too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			must(t, os.WriteFile(filepath.Join(parent, "canary"), []byte("alive"), 0o600))
			err := declcfg.WriteFS(tt.ctx, filepath.Join(parent, "out"), declcfg.FormatJSON, tt.blobs)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			checkNoLeftovers(t, parent, "canary")
		})
	}
	t.Run("not empty", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
		err := declcfg.WriteFS(context.Background(), dir, declcfg.FormatJSON, c.Blobs())
		if err == nil || !strings.Contains(err.Error(), "must be empty") {
			t.Errorf("got %v", err)
		}
		checkNoLeftovers(t, dir, "x")
	})
	t.Run("through a link", func(t *testing.T) {
		parent, elsewhere := t.TempDir(), t.TempDir()
		must(t, os.Symlink(elsewhere, filepath.Join(parent, "out")))
		if err := declcfg.WriteFS(context.Background(), filepath.Join(parent, "out"), declcfg.FormatJSON,
			c.Blobs()); err == nil {
			t.Error("no error")
		}
		checkNoLeftovers(t, elsewhere)
	})
}

// checkNoLeftovers checks that a directory holds these names and no others.
func checkNoLeftovers(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}

// A bug in what the blobs come from leaves nothing.
func TestWriteFSOfAPanic(t *testing.T) {
	parent := t.TempDir()
	err := declcfg.WriteFS(t.Context(), filepath.Join(parent, "out"), declcfg.FormatJSON,
		func(yield func(declcfg.Blob, error) bool) {
			yield(&declcfg.Package{Name: "p"}, nil)
			panic("a bug")
		})
	var bug *guard.Panic
	if !errors.As(err, &bug) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("there is left %v, %v", entries, err)
	}
}
