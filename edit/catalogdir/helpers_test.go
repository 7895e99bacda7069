package catalogdir_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a directory of files.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// contents reads all files of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case rel == ".":
		case e.IsDir():
			if entries, err := os.ReadDir(path); err != nil || len(entries) == 0 {
				files[filepath.ToSlash(rel)+"/"] = ""
			}
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(rel)] = "-> " + target
		case !e.Type().IsRegular():
			files[filepath.ToSlash(rel)] = e.Type().String()
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(rel)] = string(data)
		}
		return nil
	}))
	return files
}

// sameFiles compares the contents of two directories.
func sameFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is not there", name)
		} else if g != text {
			t.Errorf("%s: got\n%s\nwant\n%s", name, g, text)
		}
	}
	for name, text := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is there:\n%s", name, text)
		}
	}
}

// state returns the metadata of the files in a directory, to detect rewritten files.
func state(t testing.TB, dir string) map[string]fs.FileInfo {
	t.Helper()
	files := map[string]fs.FileInfo{}
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = info
		return err
	}))
	return files
}

// untouched checks that no file except those named was rewritten.
func untouched(t testing.TB, before, after map[string]fs.FileInfo, but ...string) {
	t.Helper()
	for name, was := range before {
		is, ok := after[name]
		if slices.Contains(but, name) {
			continue
		}
		if !ok || !os.SameFile(was, is) || !was.ModTime().Equal(is.ModTime()) || was.Mode() != is.Mode() ||
			was.Size() != is.Size() {
			t.Errorf("%s was touched", name)
		}
	}
}

// load reads a directory with the public reader.
func load(t testing.TB, dir string) *declcfg.Catalog {
	t.Helper()
	fsys, err := declcfg.OpenDir(dir)
	check(t, err)
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	check(t, err)
	return c
}

// text formats a catalog as declcfg writes it, with blobs of unknown schemas sorted: their order depends on files.
func text(t testing.TB, c *declcfg.Catalog) string {
	t.Helper()
	slices.SortStableFunc(c.Others,
		func(a, b declcfg.Meta) int { return strings.Compare(string(a.Blob), string(b.Blob)) })
	var out strings.Builder
	check(t, c.Write(&out, declcfg.FormatJSON))
	return out.String()
}

// edit opens a directory, changes the catalog and replaces the packages.
func edit(t testing.TB, dir string, packages []string, change func(*declcfg.Catalog)) (catalogdir.Result, error) {
	t.Helper()
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	if err != nil {
		return catalogdir.Result{}, err
	}
	defer func() { check(t, d.Close()) }()
	c, err := d.Load(context.Background(), func(pkg string) bool { return slices.Contains(packages, pkg) })
	if err != nil {
		return catalogdir.Result{}, err
	}
	change(c)
	return d.Replace(context.Background(), packages, c)
}

// parse reads the blobs of a text.
func parse(t testing.TB, text string) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "text", declcfg.LoadOptions{})
	check(t, err)
	return c
}
