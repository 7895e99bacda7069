// Package mirrortest gives tests the source registry for which oc-mirror's runs are recorded, and the recordings.
package mirrortest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Host is the registry in the references of the fixture and of the recorded image sets. Clients find it by a
// registries.conf, see [testregistry.Registry.RegistriesConf].
const Host = "registry.example.com"

// Manifest is one manifest of the fixture.
type Manifest struct {
	Repository string   `json:"repository"`
	Digest     string   `json:"digest"`
	MediaType  string   `json:"mediaType"`
	Tags       []string `json:"tags"`
}

// Source starts a registry with the content of the fixture.
func Source(t testing.TB) *testregistry.Registry {
	t.Helper()
	r := testregistry.New(t)
	Fill(t, r)
	return r
}

// Fill adds the content of the fixture to a registry.
func Fill(t testing.TB, r *testregistry.Registry) {
	t.Helper()
	files := read(t, "fixture.tar.zst")
	for _, m := range Manifests(t) {
		text := files["blobs/"+strings.TrimPrefix(m.Digest, "sha256:")]
		if len(m.Tags) == 0 {
			r.AddManifest(m.Repository, "", m.MediaType, text)
		}
		for _, tag := range m.Tags {
			r.AddManifest(m.Repository, tag, m.MediaType, text)
		}
	}
	for name, content := range files {
		if strings.HasPrefix(name, "blobs/") {
			r.AddBlob(content)
		}
	}
}

// Manifests returns the manifests of the fixture, by repository and digest.
func Manifests(t testing.TB) []Manifest {
	t.Helper()
	var all []Manifest
	if err := json.Unmarshal(read(t, "fixture.tar.zst")["manifests.json"], &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Layout writes the OCI layout with a catalog that belongs to the fixture to a directory, which must not exist.
func Layout(t testing.TB, dir string) {
	t.Helper()
	for name, content := range read(t, "fixture.tar.zst") {
		if rest, ok := strings.CutPrefix(name, "oci/"); ok {
			path := filepath.Join(dir, filepath.FromSlash(rest))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Runs returns the recorded files by their names, such as "01-m2m-heads/01-m2m.txt".
func Runs(t testing.TB) map[string][]byte {
	t.Helper()
	return read(t, "runs.tar.zst")
}

// archives are the files of each archive that was read, by its name.
var archives sync.Map

// read returns the files of an archive in testdata/mirror.
func read(t testing.TB, name string) map[string][]byte {
	t.Helper()
	open, _ := archives.LoadOrStore(name, sync.OnceValues(func() (map[string][]byte, error) { return unpack(name) }))
	files, err := open.(func() (map[string][]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func unpack(name string) (map[string][]byte, error) {
	_, file, _, _ := runtime.Caller(0)
	packed, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "..", "testdata", "mirror", name))
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[strings.TrimPrefix(h.Name, "./")], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}
