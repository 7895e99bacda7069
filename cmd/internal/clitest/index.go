package clitest

import (
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

const (
	TestConfigsLabel  = "operators.operatorframework.io.index.configs.v1"
	TestDatabaseLabel = "operators.operatorframework.io.index.database.v1"
)

// IndexDir returns a copy of editDir with index images of the database and of the directory, in the layouts db.oci and
// fbc.oci.
func IndexDir(t *testing.T) string {
	t.Helper()
	dir := EditDir(t)
	Done(t, dir, "bindery", "index", "add", "-b", "", "-f", "index.db", "-t", "acme/db:v1", "--server", "none")
	Done(t, dir, "bindery", "index", "add", "-b", "", "-f", "catalog", "-t", "acme/fbc:v1", "--server", "none")
	return dir
}

// Opened opens the image of a layout.
func Opened(t *testing.T, name string, p v1.Platform) *images.Image {
	t.Helper()
	img, err := imagetest.Client(t).Image(t.Context(), name, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

// OpmFor returns a binary image like opm's own.
func OpmFor(arch string) testregistry.Image {
	return testregistry.Image{
		Platform: v1.Platform{OS: "linux", Architecture: arch}, Entrypoint: []string{"/bin/opm"},
		Labels: map[string]string{"opm": arch},
		Layers: []map[string]string{{"bin/opm": "opm for " + arch, "bin/grpc_health_probe": "probe"},
			{"etc/release": "x"}},
	}
}
