package recorded

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Export unpacks the recorded output of opm's "index export" for the packages etcd and silicom-sts-operator of the
// database small to a temporary directory and returns the folder with the packages.
func Export(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	tr := tar.NewReader(bytes.NewReader(Part(t).File(t, "index-export-two.tar")))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "dl2")
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(to, 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
