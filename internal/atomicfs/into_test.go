package atomicfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory that exists keeps what it is, so that it may be a mount point; it must be empty at the beginning and the end.
func TestDirectoryThatExistsIsWrittenInto(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile func(dir string) error
		fails             string
	}{
		"empty":        {},
		"a new volume": {before: func(dir string) error { return os.Mkdir(filepath.Join(dir, "lost+found"), 0o700) }},
		"what a killed writer has left": {before: func(dir string) error {
			return os.Mkdir(filepath.Join(dir, ".bindery-tree.bindery-0123456789abcdef"), 0o755)
		}},
		"full":             {before: func(dir string) error { return os.Mkdir(filepath.Join(dir, "old"), 0o755) }, fails: `has "old"`},
		"filled meanwhile": {meanwhile: func(dir string) error { return os.Mkdir(filepath.Join(dir, "new"), 0o755) }, fails: `meanwhile: output dir`},
	} {
		for put, commit := range map[string]func(*Dir) error{"Commit": (*Dir).Commit, "Replace": (*Dir).Replace} {
			if put == "Replace" && c.before != nil && c.fails != "" {
				continue // it replaces what is there
			}
			t.Run(name+", "+put, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "public")
				check(t, os.Mkdir(dir, 0o755))
				check(t, os.Chmod(dir, os.ModeSetgid|0o775))
				before, err := os.Stat(dir)
				check(t, err)
				if c.before != nil {
					check(t, c.before(dir))
				}
				err = func() error {
					d, err := NewDir(dir)
					if err != nil {
						return err
					}
					check(t, os.MkdirAll(filepath.Join(d.Path(), "page"), 0o755))
					check(t, os.WriteFile(filepath.Join(d.Path(), "index.html"), []byte("x"), 0o644))
					if c.meanwhile != nil {
						check(t, c.meanwhile(dir))
					}
					err = commit(d)
					return errors.Join(err, d.Abort())
				}()
				after, statErr := os.Stat(dir)
				check(t, statErr)
				if !os.SameFile(before, after) || before.Mode() != after.Mode() {
					t.Errorf("the directory is another one: %v, was %v", after.Mode(), before.Mode())
				}
				entries := strings.Join(list(t, dir), " ")
				if c.fails != "" {
					if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), c.fails) || strings.Contains(entries, "index") {
						t.Errorf("%v; there is %s", err, entries)
					}
					return
				}
				if err != nil || !strings.HasSuffix(strings.ReplaceAll(entries, " lost+found", ""), "index.html page") || strings.Contains(entries, "bindery") {
					t.Errorf("%v; there is %s", err, entries)
				}
			})
		}
	}
}

// A directory that is not committed is empty again, and is called empty while it has what a killed writer has left.
func TestDirectoryThatExistsIsLeftEmpty(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		check(t, CheckEmpty(dir))
		d, err := NewDir(dir)
		check(t, err)
		if filepath.Dir(d.Path()) != dir {
			t.Errorf("it is written to %s", d.Path())
		}
		check(t, os.WriteFile(filepath.Join(d.Path(), "index.html"), []byte("x"), 0o644))
		check(t, d.Abort())
		if left := list(t, dir); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		check(t, os.Mkdir(filepath.Join(dir, ".bindery-tree.bindery-0123456789abcdef"), 0o755))
	}
}

// Of two writers of a new directory the second one says what has come there.
func TestTwoWritersOfANewDirectory(t *testing.T) {
	target := filepath.Join(t.TempDir(), "site")
	var dirs [2]*Dir
	for i := range dirs {
		d, err := NewDir(target)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(d.Path(), "index.html"), nil, 0o644))
		dirs[i] = d
	}
	check(t, dirs[0].Commit())
	if err := dirs[1].Commit(); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), `has "index.html"`) {
		t.Error(err)
	}
	check(t, dirs[1].Abort())
}
