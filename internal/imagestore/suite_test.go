//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/images/storetest"
	"github.com/operator-bindery/bindery/internal/imagestore"
	"github.com/operator-bindery/bindery/internal/imagetest"
)

// An image in a store is read as at every place.
func TestReadAsEveryPlace(t *testing.T) {
	dir := t.TempDir()
	small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p := newPlace(t)
	if _, err := load(t, imagetest.Opened(t, newClient(t), "oci:"+dir+"/layout:v1"), nil,
		p.name("localhost/acme/cat:v1")); err != nil {
		t.Fatal(err)
	}
	src, err := imagestore.OpenSource(t.Context(),
		imagestore.Name{Place: "vfs@" + p.root + "+" + p.run, Image: "localhost/acme/cat:v1"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	storetest.TestReader(t, src, src.Top().Digest.String())
}
