package testregistry

import (
	"archive/tar"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// RecordedHost is the registry that the references in opm's recorded answers name.
const RecordedHost = "127.0.0.1:5056"

// Recorded starts a registry with the bundle images that opm's recorded answers are about. It skips the test where the
// collection beside the project is absent.
func Recorded(t testing.TB) *Registry {
	t.Helper()
	files, err := recordedFiles()
	if os.IsNotExist(err) {
		t.Skipf("the collection of recorded images is not there: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := New(t)
	r.AddLayout(t, files)
	return r
}

// recordedFiles reads the collection once in a process.
var recordedFiles = sync.OnceValues(func() (map[string][]byte, error) {
	_, file, _, _ := runtime.Caller(0)
	return ReadTar(filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "oracle", "images", "dev-images.oci.tar"))
})

// ReadTar reads the files of an archive of an OCI layout; a directory above the layout is left out of the names.
func ReadTar(name string) (map[string][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files := map[string][]byte{}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := strings.TrimPrefix(path.Clean(h.Name), "./")
		if i := strings.Index(name, "blobs/"); i > 0 {
			name = name[i:]
		}
		if base := path.Base(name); base == "index.json" || base == "oci-layout" {
			name = base
		}
		if files[name], err = io.ReadAll(tr); err != nil {
			return nil, err
		}
	}
}
