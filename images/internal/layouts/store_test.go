package layouts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/images/transport"
)

// emptyLayout makes a layout without images at a place, unless there is one.
func emptyLayout(t testing.TB, p transport.Destination) {
	t.Helper()
	if _, err := os.Lstat(p.Path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	dir := p.Path
	if p.Transport == transport.OCIArchive {
		dir = filepath.Join(t.TempDir(), "layout")
	}
	err := errors.Join(os.MkdirAll(filepath.Join(dir, blobsDir, "sha256"), 0o755),
		os.WriteFile(filepath.Join(dir, layoutFile), []byte(`{"imageLayoutVersion":"`+v1.ImageLayoutVersion+`"}`), 0o644),
		os.WriteFile(filepath.Join(dir, indexFile), []byte(emptyIndex), 0o644))
	if err == nil && p.Transport == transport.OCIArchive {
		err = archiveLayout(t.Context(), dir, p.Path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// added is a layout or an archive below a directory, to which images are added.
func added(format transport.Name) func(t testing.TB, dir string) storetest.Place {
	return func(t testing.TB, dir string) storetest.Place {
		p := transport.Destination{Transport: format, Path: filepath.Join(dir, "place")}
		emptyLayout(t, p)
		return storetest.Place{Dir: dir,
			Writer: func(t testing.TB) store.Writer { return newAddition(t, p).Writer },
			Reader: func(t testing.TB) store.Reader { return openRepository(t, p) }}
	}
}

var layoutFormats = []transport.Name{transport.OCI, transport.OCIArchive}

func TestStore(t *testing.T) {
	for _, format := range layoutFormats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			storetest.TestWriter(t, func(t testing.TB) storetest.Place { return added(format)(t, t.TempDir()) })
		})
	}
}

func TestKilledWriters(t *testing.T) {
	for _, format := range layoutFormats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			storetest.TestKilled(t, added(format))
		})
	}
}
