package atomicfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	for _, tt := range []struct{ name, there, want string }{
		{"nothing is there", "", ""},
		{"an empty directory is there", "dir", ""},
		{"a full directory is there", "full", ""},
		{"a file is there", "file", "not a directory"},
		{"a link is there", "link", "symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			target := filepath.Join(parent, "out")
			elsewhere := t.TempDir()
			var err error
			switch tt.there {
			case "dir":
				err = os.Mkdir(target, 0o755)
			case "full":
				err = os.MkdirAll(filepath.Join(target, "old", "older"), 0o755)
			case "file":
				err = os.WriteFile(target, []byte("mine"), 0o644)
			case "link":
				err = os.Symlink(elsewhere, target)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := NewDir(target)
			if err == nil {
				if err = os.WriteFile(filepath.Join(d.Path(), "new"), nil, 0o644); err == nil {
					err = d.Replace()
				}
				if aborted := d.Abort(); aborted != nil {
					t.Error(aborted)
				}
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			entries, err := os.ReadDir(parent)
			if err != nil || len(entries) != 1 {
				t.Errorf("beside it: %v (%v)", entries, err)
			}
			if tt.want == "" {
				if entries, err := os.ReadDir(target); err != nil || len(entries) != 1 || entries[0].Name() != "new" {
					t.Errorf("there: %v (%v)", entries, err)
				}
			}
		})
	}
}

func TestExchangeByRenames(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, d := range []string{a, b} {
		if err := os.MkdirAll(filepath.Join(d, "of-"+filepath.Base(d)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchangeByRenames(a, b); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(b, "of-a")); err != nil {
		t.Error(err)
	}
	if err := exchangeByRenames(filepath.Join(dir, "missing"), b); err == nil {
		t.Error("what is not there was swapped")
	}
	if _, err := os.Stat(filepath.Join(b, "of-a")); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}
