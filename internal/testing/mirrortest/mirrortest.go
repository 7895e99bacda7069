// Package mirrortest gives tests the source registry for which oc-mirror's runs are recorded, and the recordings.
package mirrortest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
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
	Add(t, r, read(t, "fixture.tar.zst"))
}

// Add adds the content of an archive to a registry: manifests.json lists the manifests, and below blobs/ are they and
// the blobs, each under the hexadecimal form of its digest.
func Add(t testing.TB, r *testregistry.Registry, files map[string][]byte) {
	t.Helper()
	for _, m := range ManifestsIn(t, files) {
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
	return ManifestsIn(t, read(t, "fixture.tar.zst"))
}

// ManifestsIn returns the manifests of an archive that [Add] takes, by repository and digest.
func ManifestsIn(t testing.TB, files map[string][]byte) []Manifest {
	t.Helper()
	var all []Manifest
	if err := json.Unmarshal(files["manifests.json"], &all); err != nil {
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

// read returns the files of an archive in testdata/mirror.
func read(t testing.TB, name string) map[string][]byte {
	t.Helper()
	return recorded.Archive(t, filepath.Join(recorded.SourceRoot(), "testdata", "mirror", name))
}
