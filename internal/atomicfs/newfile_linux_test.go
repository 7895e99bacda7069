package atomicfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// names lists a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Of several writers of a file that must not exist one succeeds. The others change nothing.
func TestNewFiles(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "file")
	results := make(chan error, 8)
	var writers sync.WaitGroup
	for range cap(results) {
		writers.Go(func() { results <- WriteNewFile(target, []byte("text"), 0o640) })
	}
	writers.Wait()
	close(results)
	written := 0
	for err := range results {
		switch {
		case err == nil:
			written++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if got := names(t, dir); written != 1 || len(got) != 1 {
		t.Errorf("%d have written, and there are %v", written, got)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "text" {
		t.Errorf("%s, %v", text, err)
	}
	if err := MoveNew(filepath.Join(dir, "absent"), filepath.Join(dir, "new")); err == nil {
		t.Error("a file that is not there was moved")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// Whether a file can be written is found out without leaving one.
func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	if err := CheckFile(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	if err := CheckFile(filepath.Join(dir, "absent", "file")); err == nil {
		t.Error("no directory: no error")
	}
	if err := Sweep(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// A blob is in its place as a whole, or not at all.
func TestWriteBlob(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "blob")
	lost := errors.New("the registry does not answer")
	if err := WriteBlob(dir, target, iotest.ErrReader(lost)); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if err := WriteBlob(dir, target, strings.NewReader("blob")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode() != 0o644 || info.Size() != 4 || len(names(t, dir)) != 1 {
		t.Errorf("%v, %v", info, err)
	}
}

// A scratch file in memory is written and read as one on a disk.
func TestMemory(t *testing.T) {
	s, err := NewMemory("scratch")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(s, 0, 4))
	if err != nil || string(text) != "text" {
		t.Errorf("%s, %v", text, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A new file gets the owner of the one that it replaces, where that is permitted.
func TestKeepOwner(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := os.Getuid() == 0
	if root {
		if err := os.Chown(old, 1234, 2345); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(old)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := KeepOwner(f, info); err != nil {
		t.Fatal(err)
	}
	info, err = f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	uid, gid, ok := Owner(info)
	if !ok || root && (uid != 1234 || gid != 2345) || !root && uid != os.Getuid() {
		t.Errorf("%d:%d, %v", uid, gid, ok)
	}
}
