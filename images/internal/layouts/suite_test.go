package layouts_test

import (
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An image in a directory of the containers tools, or in an archive of Docker, is read as at every place.
func TestReadAsEveryPlace(t *testing.T) {
	c, dir := newClient(t), t.TempDir()
	testregistry.Image{Layers: []map[string]string{{"a/b": "text"}}}.WriteLayout(t, filepath.Join(dir, "source"), "v1")
	for _, p := range []transport.Destination{{Transport: transport.Directory, Path: filepath.Join(dir, "directory")},
		{Transport: transport.DockerArchive, Path: filepath.Join(dir, "image.tar"), Name: "example.test/a/b:v1"}} {
		t.Run(string(p.Transport), func(t *testing.T) {
			mustCopy(t, c, "oci:"+filepath.Join(dir, "source")+":v1", p.String(), referrers.Kinds{})
			src, err := layouts.OpenSource(t.Context(), p, limit.Limits{}.WithDefaults(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			storetest.TestReader(t, src, src.Top.Digest.String())
		})
	}
}
