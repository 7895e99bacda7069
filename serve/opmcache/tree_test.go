package opmcache

import (
	"archive/tar"
	"encoding/hex"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/layers"
)

// packagesOf returns the packages of a catalog with a directory for each.
func packagesOf(t testing.TB, dir string) []Package {
	t.Helper()
	var out []Package
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		e, err := layers.File(configsDir+"/"+name, fsys, name)
		if err != nil {
			return err
		}
		pkg, _, _ := strings.Cut(name, "/")
		if len(out) == 0 || out[len(out)-1].Name != pkg {
			out = append(out, Package{Name: pkg})
		}
		last := &out[len(out)-1]
		last.Files = append(last.Files, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// textPackage is a package with one file.
func textPackage(name, text string) Package {
	return Package{name, []layers.Entry{layers.Bytes(configsDir+"/"+name+"/catalog.yaml", 0o644, []byte(text))}}
}

// unpack writes entries into a new directory with their modes and returns it.
func unpack(t testing.TB, lists ...[]layers.Entry) string {
	t.Helper()
	root := t.TempDir()
	chmod := func(name string, mode fs.FileMode) {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(name string) {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range lists {
		for _, e := range list {
			name := filepath.Join(root, e.Name)
			if e.Kind == layers.KindDir {
				mkdir(name)
				chmod(name, e.Mode)
				continue
			}
			mkdir(filepath.Dir(name))
			r, err := e.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil || int64(len(text)) != e.Size {
				t.Fatalf("%s has %d bytes, not %d: %v", e.Name, len(text), e.Size, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			chmod(name, e.Mode)
		}
	}
	return root
}

// filesOf returns all files of packages as in an image.
func filesOf(all []Package) []layers.Entry {
	es := []layers.Entry{layers.Dir(configsDir, 0o755)}
	for _, p := range all {
		es = append(es, p.Files...)
	}
	return es
}

// describedDigest computes the digest of the format json from real directories, by its description: with headers that
// the standard library builds from the files, without owners, user names and times.
func describedDigest(t testing.TB, dirs ...string) string {
	t.Helper()
	sum := fnv.New64a()
	for _, dir := range dirs {
		describedTree(t, sum, dir)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func describedTree(t testing.TB, sum hash.Hash, dir string) {
	t.Helper()
	tw := tar.NewWriter(sum)
	err := filepath.Walk(dir, func(file string, info fs.FileInfo, err error) error {
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		if h.Name, err = filepath.Rel(dir, file); err != nil {
			return err
		}
		h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""
		h.ModTime, h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}, time.Time{}
		if err := tw.WriteHeader(h); err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = tw.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
}

// leftOver fails the test if a directory for temporary files is not empty.
func leftOver(t testing.TB, dir string) {
	t.Helper()
	if es, err := os.ReadDir(dir); err != nil || len(es) > 0 {
		t.Errorf("left in the directory for temporary files: %v, %v", es, err)
	}
}
