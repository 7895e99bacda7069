package filetx_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/operator-bindery/bindery/internal/filetx"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// directory creates a directory with some files.
func directory(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c/d/e", "f/g", "f/h"} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("old "+name), 0o644))
	}
	check(t, os.Mkdir(filepath.Join(dir, "f/empty"), 0o755))
	root, err := os.OpenRoot(dir)
	check(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

// read returns the files and directories of a directory.
func read(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	files := map[string]string{}
	check(t, fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			files[name+"/"] = ""
			return err
		}
		data, err := root.ReadFile(name)
		files[name] = string(data)
		return err
	}))
	return files
}

// replace writes new files, and removes those whose text is empty.
func replace(ctx context.Context, root *os.Root, h filetx.Hooks, files map[string]string) (err error) {
	tx, err := filetx.Begin(root, h)
	if err != nil {
		return err
	}
	var changes []filetx.Change
	for name, text := range files {
		c := filetx.Change{Name: name}
		if info, err := root.Lstat(name); err == nil {
			c.Old = info
		}
		if text != "" {
			f, staged, err := tx.Create()
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			c.Staged = staged
			info, statErr := f.Stat()
			if err = errors.Join(err, statErr, f.Close()); err != nil {
				return err
			}
			c.New = info
		}
		changes = append(changes, c)
	}
	return errors.Join(tx.Commit(ctx, changes), tx.Close())
}

var edits = map[string]map[string]string{
	"one file":         {"a": "new a"},
	"one file removed": {"c/d/e": ""},
	"one file added":   {"x": "new x"},
	"new directories":  {"x/y/z": "new z"},
	"all kinds":        {"a": "new a", "b": "", "c/d/e": "", "f/g": "", "f/h": "new h", "x/y/z": "new z"},
}

// A transaction that is aborted or cancelled at any step is rolled back completely, unless it was committed.
func TestEveryStep(t *testing.T) {
	for name, files := range edits {
		root, _ := directory(t)
		old := read(t, root)
		check(t, replace(context.Background(), root, filetx.Hooks{}, files))
		want := read(t, root)
		for _, noLinks := range []bool{false, true} {
			for _, cancelled := range []bool{false, true} {
				for step := 0; ; step++ {
					root, _ := directory(t)
					ctx, cancel := context.WithCancel(context.Background())
					n := step
					h := filetx.Hooks{NoLinks: noLinks, Step: func(string) {
						if n--; n >= 0 {
							return
						}
						if cancel(); !cancelled {
							runtime.Goexit() // no deferred rollback runs, as after a kill
						}
					}}
					done := make(chan error, 1)
					go func() {
						defer close(done)
						done <- replace(ctx, root, h, files)
					}()
					err, returned := <-done
					cancel()
					if !returned {
						_ = filetx.Await(root) // returns whether or not there is a journal
						check(t, filetx.Recover(root))
					}
					check(t, filetx.Recover(root))
					check(t, filetx.Await(root))
					now := read(t, root)
					isNew := maps.Equal(now, want)
					if !isNew && !maps.Equal(now, old) || returned && (err == nil) != isNew {
						t.Errorf("%s, no links %v, cancelled %v, step %d: %v: %q",
							name, noLinks, cancelled, step, err, now)
					}
					if n >= 0 {
						break
					}
				}
			}
		}
	}
}

// A change that another program makes after the caller read the file is not overwritten.
func TestChanged(t *testing.T) {
	for _, noLinks := range []bool{false, true} {
		root, dir := directory(t)
		old := read(t, root)
		h := filetx.Hooks{NoLinks: noLinks, Step: func(step string) {
			if step == "journal" {
				check(t, os.WriteFile(filepath.Join(dir, "h"), []byte("theirs"), 0o644))
				check(t, os.Rename(filepath.Join(dir, "h"), filepath.Join(dir, "f/h")))
			}
		}}
		if err := replace(context.Background(), root, h, edits["all kinds"]); !errors.Is(err, filetx.ErrChanged) {
			t.Errorf("got %v", err)
		}
		old["f/h"] = "theirs"
		if now := read(t, root); !maps.Equal(now, old) {
			t.Errorf("no links %v: %q", noLinks, now)
		}
	}
}
