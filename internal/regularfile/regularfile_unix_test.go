//go:build unix

package regularfile

import (
	"context"
	"errors"
	"io"
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

// What others have made is read from regular files of a limited size only.
func TestRead(t *testing.T) {
	dir := tree(t)
	if text, err := Read(filepath.Join(dir, "file"), 5); err != nil || string(text) != "12345" {
		t.Errorf("%s, %v", text, err)
	}
	for name, want := range map[string]string{"dir": "not a regular file", "link": "not a regular file",
		"fifo": "not a regular file", "absent": "no such file"} {
		if _, err := Read(filepath.Join(dir, name), 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "file"), 4); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("a file that is too long: %v", err)
	}
}

// What the user names is read through links and out of pipes. What a pipe has given is read again.
func TestNamed(t *testing.T) {
	dir, ctx := tree(t), t.Context()
	for _, name := range []string{"file", "link"} {
		if text, err := ReadMounted(ctx, filepath.Join(dir, name)); err != nil || string(text) != "12345" {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if _, err := ReadNamed(ctx, filepath.Join(dir, name), 4); !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s is too long: %v", name, err)
		}
	}
	var kind *KindError
	if _, err := ReadMounted(ctx, dir); !errors.As(err, &kind) || !strings.Contains(err.Error(), "a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadMounted(ctx, filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	go func() { _ = os.WriteFile(fifo, []byte("secret"), 0) }()
	for range 2 {
		if text, err := ReadNamed(ctx, fifo, 6); err != nil || string(text) != "secret" {
			t.Errorf("%s, %v", text, err)
		}
	}
	if _, err := ReadNamed(ctx, fifo, 5); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("a pipe that has given too much: %v", err)
	}
}

// Opening a FIFO, and reading it, end with the context.
func TestNamedEnds(t *testing.T) {
	fifo := filepath.Join(tree(t), "fifo")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := OpenNamed(ended, fifo); !errors.Is(err, context.Canceled) {
		t.Errorf("a FIFO without a writer: %v", err)
	}
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx, stop := context.WithCancel(t.Context())
	f, err := OpenNamed(ctx, fifo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("a"); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Read(make([]byte, 10)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	stop()
	if _, err := io.ReadAll(f); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// What is read in any order must be a regular file, or /dev/null.
func TestSeekable(t *testing.T) {
	dir := tree(t)
	for path, want := range map[string]string{filepath.Join(dir, "file"): "", filepath.Join(dir, "link"): "",
		os.DevNull:                 "",
		filepath.Join(dir, "fifo"): "a pipe", dir: "a directory", filepath.Join(dir, "absent"): "no such file",
		"/dev/zero": "a device"} {
		f, err := OpenSeekable(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			f.Close()
		}
	}
	if !IsNull(os.DevNull) || IsNull(dir) || IsNull(filepath.Join(dir, "absent")) {
		t.Error("IsNull is wrong")
	}
}
