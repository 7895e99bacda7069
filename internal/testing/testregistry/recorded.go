package testregistry

import (
	"archive/tar"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// RecordedHost is the registry in the references of opm's recorded answers.
const RecordedHost = "127.0.0.1:5056"

// Recorded starts a registry with the bundle images of opm's recorded answers.
func Recorded(t testing.TB) *Registry {
	t.Helper()
	readRecorded.Do(func() {
		recordedFiles, recordedErr = ReadTar(filepath.Join(string(recorded.All(t)), "images", "dev-images.oci.tar"))
	})
	if recordedErr != nil {
		t.Fatal(recordedErr)
	}
	r := New(t)
	r.AddLayout(t, recordedFiles)
	return r
}

// The images are read once per process.
var (
	readRecorded  sync.Once
	recordedFiles map[string][]byte
	recordedErr   error
)

// ReadTar reads the files of an archived OCI layout; a leading directory is removed from the names.
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
