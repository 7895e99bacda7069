//go:build unix

package nolink

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// tree has a file, an empty directory, a link to each, and a FIFO.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o600),
		os.Mkdir(filepath.Join(dir, "dir"), 0o700), os.Symlink("file", filepath.Join(dir, "link")),
		os.Symlink("dir", filepath.Join(dir, "dirlink")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Nothing below a directory leads out of it.
func TestBelow(t *testing.T) {
	dir := tree(t)
	for path, good := range map[string]bool{"file": true, "dir/absent/a": true, "absent": true, ".": true, "../x": false,
		"/etc": true, "link": false, "dirlink/x": false, "file/x": false} {
		got, err := Below(dir, filepath.FromSlash(path))
		if (err == nil) != good || good && got != filepath.Join(dir, path) || !good && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	if made, err := MakeDir(dir, "dir", "a", "b"); err != nil || made != filepath.Join(dir, "dir", "a", "b") {
		t.Errorf("%s, %v", made, err)
	}
	for _, path := range []string{"file", "dirlink/x", "../x"} {
		if _, err := MakeDir(dir, path); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a directory %s: %v", path, err)
		}
	}
	if text, err := Read(5, dir, "file"); err != nil || string(text) != "12345" {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := Read(5, dir, "link"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a link: %v", err)
	}
	if text, err := fs.ReadFile(FS(dir), "file"); err != nil || string(text) != "12345" {
		t.Errorf("%s, %v", text, err)
	}
	if entries, err := fs.ReadDir(FS(dir), "dir"); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := FS(dir).Open("fifo"); err == nil {
		t.Error("a FIFO: no error")
	}
}

// A file with another name is not changed in place.
func TestCheckOwn(t *testing.T) {
	dir := tree(t)
	check := func(name string) error {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return CheckOwn(path, info)
	}
	if err := check("file"); err != nil {
		t.Error(err)
	}
	if err := check("link"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a link: %v", err)
	}
	if err := os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "second")); err != nil {
		t.Fatal(err)
	}
	if err := check("file"); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "2 names") {
		t.Errorf("a file with two names: %v", err)
	}
}
