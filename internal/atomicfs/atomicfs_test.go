package atomicfs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMain(m *testing.M) {
	// As a child process, the test begins a file and a directory and waits to be killed.
	if dir := os.Getenv("ATOMICFS_DIE_IN"); dir != "" {
		d, err := NewDir(filepath.Join(dir, "tree"))
		if err == nil {
			err = os.WriteFile(filepath.Join(d.Path(), "half"), []byte("x"), 0o600)
		}
		f, fileErr := NewFile(filepath.Join(dir, "file"), 0o600)
		if err == nil && fileErr == nil {
			_, err = f.Write([]byte("half"))
		}
		fmt.Println("ready", err, fileErr)
		// Reading stdin ends when the test ends, and the runtime does not report it as a deadlock.
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(d)
		runtime.KeepAlive(f)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Leftovers of a killed process are removed by the next writer; files that a live process is writing are not.
func TestLeftoversOfAKilledWriter(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ATOMICFS_DIE_IN="+dir)
	out, err := cmd.StdoutPipe()
	check(t, err)
	_, err = cmd.StdinPipe()
	check(t, err)
	check(t, cmd.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	check(t, err)
	if got := strings.TrimSpace(string(line[:n])); got != "ready <nil> <nil>" {
		t.Fatalf("child says %q", got)
	}
	if names := list(t, dir); len(names) != 2 {
		t.Fatalf("child made %q", names)
	}
	check(t, WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o600))
	if names := list(t, dir); len(names) != 3 {
		t.Errorf("the living child's files are gone: %q", names)
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait() // fails because it was killed
	check(t, WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o600))
	d, err := NewDir(filepath.Join(dir, "tree"))
	check(t, err)
	check(t, d.Commit())
	check(t, d.Abort())
	if names := strings.Join(list(t, dir), " "); names != "file tree" {
		t.Errorf("left: %q", names)
	}
}

func TestConcurrentWritersOfOneFile(t *testing.T) {
	target := filepath.Join(t.TempDir(), "file")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := WriteFile(target, []byte(strings.Repeat(string(rune('a'+i)), 10_000)), 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(target)
	check(t, err)
	if len(data) != 10_000 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Error("the file is a mixture")
	}
	if names := list(t, filepath.Dir(target)); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
}

// Giving up a file does not fail when another writer removes leftovers at that moment.
func TestAbortWhileOthersSweep(t *testing.T) {
	target := filepath.Join(t.TempDir(), "file")
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			if err := Sweep(target); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		var all []*File
		for range 50 {
			f, err := NewFile(target, 0o600)
			check(t, err)
			all = append(all, f)
		}
		for _, f := range all {
			check(t, f.Abort())
		}
	}
	done.Store(true)
	wg.Wait()
	if names := list(t, filepath.Dir(target)); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
}

func TestAbortKeepsTheOldFile(t *testing.T) {
	target := filepath.Join(t.TempDir(), "file")
	check(t, WriteFile(target, []byte("old"), 0o600))
	f, err := NewFile(target, 0o600)
	check(t, err)
	_, err = f.Write([]byte("new"))
	check(t, err)
	check(t, f.Abort())
	check(t, f.Abort())
	if data, _ := os.ReadFile(target); string(data) != "old" {
		t.Errorf("file holds %q", data)
	}
	if names := list(t, filepath.Dir(target)); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
}

// Abort removes the parent directories that NewDir created, unless they are in use by then.
func TestAbortRemovesTheDirectoriesThatWereMade(t *testing.T) {
	dir := t.TempDir()
	d, err := NewDir(filepath.Join(dir, "a", "b", "tree"))
	check(t, err)
	check(t, d.Abort())
	check(t, d.Abort())
	if names := list(t, dir); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
	d, err = NewDir(filepath.Join(dir, "a", "b", "tree"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "a", "other"), nil, 0o600))
	check(t, d.Abort())
	if names := strings.Join(list(t, filepath.Join(dir, "a")), " "); names != "other" {
		t.Errorf("left: %q", names)
	}
}

func TestLinksAndDirectoriesAreNotWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "real"), []byte("old"), 0o600))
	check(t, os.Symlink("real", filepath.Join(dir, "link")))
	if err := WriteFile(filepath.Join(dir, "link"), []byte("new"), 0o600); err == nil {
		t.Error("wrote through a link")
	}
	if err := WriteFile(dir, []byte("new"), 0o600); err == nil {
		t.Error("wrote over a directory")
	}
	if _, err := NewDir(filepath.Join(dir, "link")); err == nil {
		t.Error("made a directory of a link")
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "real")); string(data) != "old" {
		t.Errorf("file holds %q", data)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A batch removes leftovers of its own files and not those of others.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".a.bindery-0000000000000000", ".b.bindery-0000000000000000",
		".c.bindery-0000000000000000"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	var batch Batch
	for _, name := range []string{"a", "b", "a"} {
		f, err := batch.NewFile(filepath.Join(dir, name), 0o600)
		check(t, err)
		_, err = f.WriteString(name)
		check(t, err)
		check(t, f.Commit())
		check(t, f.Abort())
	}
	if names := strings.Join(list(t, dir), " "); names != ".c.bindery-0000000000000000 a b" {
		t.Errorf("left: %q", names)
	}
}
