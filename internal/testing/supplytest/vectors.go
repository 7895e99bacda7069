// Package supplytest gives tests images with signatures and attestations, good ones and such that must be refused, with
// their keys and policies.
package supplytest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// Repository is the repository that the identities in the signatures have, with the tag v1; images whose names contain
// "index" or "multi" are signed as [IndexRepository] with the tag multi.
const (
	Repository      = "registry.example.com/acme/catalog"
	IndexRepository = "registry.example.com/acme/etcd"
)

// Passphrase is that of the encrypted keys.
const Passphrase = "test"

// Vectors returns the files of each image by its name. Each image is an OCI layout of one repository. "keys" and
// "policy" are not images.
func Vectors(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	all, err := vectors()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var vectors = sync.OnceValues(func() (map[string]map[string][]byte, error) {
	packed, err := os.ReadFile(filepath.Join(recorded.SourceRoot(), "testdata", "signatures", "vectors.tar.zst"))
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	all := map[string]map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		vector, name, _ := strings.Cut(h.Name, "/")
		if all[vector] == nil {
			all[vector] = map[string][]byte{}
		}
		all[vector][name] = text
	}
})

// Unpack writes the files of an image, or the keys, to a temporary directory and returns it.
func Unpack(t testing.TB, vector string) string {
	t.Helper()
	files, ok := Vectors(t)[vector]
	if !ok {
		t.Fatalf("there is no vector %s", vector)
	}
	dir := t.TempDir()
	write(t, dir, files, "")
	return dir
}

// Policies writes keys and policies to a temporary directory and returns it. The policies name the keys there.
func Policies(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, Vectors(t)["keys"], "")
	write(t, dir, Vectors(t)["policy"], dir)
	return dir
}

// write writes files, with the directory of the keys filled in unless it is empty.
func write(t testing.TB, dir string, files map[string][]byte, keys string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if keys != "" {
			text = bytes.ReplaceAll(text, []byte("@KEYS@"), []byte(filepath.ToSlash(keys)))
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
