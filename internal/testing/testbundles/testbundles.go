// Package testbundles has the directories of the bundles for which opm's answers were recorded.
package testbundles

import (
	"archive/tar"
	"bufio"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// Names returns the recorded bundles, named NAME-TAG after their images, sorted.
func Names(t testing.TB) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(all(t)))
}

// Write writes the directory of a recorded bundle to dir/NAME-TAG and returns that path.
func Write(t testing.TB, dir, name string) string {
	t.Helper()
	files, ok := all(t)[name]
	if !ok {
		t.Fatalf("no bundle %q among the recorded ones", name)
	}
	root := filepath.Join(dir, name)
	for file, content := range files {
		to := filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func all(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	once.Do(func() { bundles, bundlesErr = read(string(recorded.All(t))) })
	if bundlesErr != nil {
		t.Fatal(bundlesErr)
	}
	return bundles
}

// The collection is read once per process.
var (
	once       sync.Once
	bundles    map[string]map[string][]byte
	bundlesErr error
)

// read reads the files of each bundle.
func read(collection string) (map[string]map[string][]byte, error) {
	names, err := namesByDirectory(collection)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string][]byte{}
	add := func(file string, content []byte) {
		parts := strings.SplitN(file, "/", 3)
		if len(parts) < 3 {
			return
		}
		name, ok := names[parts[0]+"/"+parts[1]]
		if !ok {
			return
		}
		if out[name] == nil {
			out[name] = map[string][]byte{}
		}
		out[name][parts[2]] = content
	}
	if err := readArchive(filepath.Join(collection, "bundles-all-dev-packages.tar.zst"), add); err != nil {
		return nil, err
	}
	synthetic := os.DirFS(filepath.Join(collection, "bundles", "synth"))
	err = fs.WalkDir(synthetic, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(synthetic, name)
		add(name, content)
		return err
	})
	return out, err
}

// namesByDirectory maps PACKAGE/VERSION to the name of the bundle.
func namesByDirectory(collection string) (map[string]string, error) {
	names := map[string]string{}
	for _, list := range []string{"images-dev.tsv", "images-synth-dev.tsv"} {
		f, err := os.Open(filepath.Join(collection, list))
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Split(lines.Text(), "\t")
			if len(fields) < 4 {
				continue
			}
			repository, tag, _ := strings.Cut(path.Base(fields[0]), ":")
			names[path.Base(path.Dir(fields[3]))+"/"+path.Base(fields[3])] = repository + "-" + tag
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func readArchive(name string, add func(string, []byte)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return err
		}
		add(path.Clean(h.Name), content)
	}
}
