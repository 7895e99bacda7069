package recorded

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// archives are the functions that read an archive once, by its absolute name.
var archives sync.Map

// Archive returns the regular files of an archive compressed with zstd, by their names. Each archive is read once in a
// process, so that callers must not change what they get.
func Archive(t testing.TB, name string) map[string][]byte {
	t.Helper()
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	open, _ := archives.LoadOrStore(name, sync.OnceValues(func() (map[string][]byte, error) { return unarchive(name) }))
	files, err := open.(func() (map[string][]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func unarchive(name string) (map[string][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if files[strings.TrimPrefix(h.Name, "./")], err = io.ReadAll(tr); err != nil {
				return nil, err
			}
		}
	}
}
