//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/internal/imagestore"
	"github.com/operator-bindery/bindery/images/store/storetest"
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
	storetest.TestReader(t, src, src.Top.Digest.String())
	// The manifest that the image had in the layout is beside the one that is made of its layers.
	if src.Digest == src.Top.Digest {
		t.Errorf("the image is known by %s, which is made here", src.Digest)
	}
	if text, _, err := src.Manifest(t.Context(), src.Digest.String()); err != nil || digest.FromBytes(text) != src.Digest {
		t.Errorf("its own manifest: %s, %v", text, err)
	}
	if text, _, err := src.Manifest(t.Context(), digest.FromString("another").String()); err == nil {
		t.Errorf("another manifest: %s", text)
	}
	if there, err := src.HasBlob(t.Context(),
		v1.Descriptor{Digest: digest.FromString("another"), Size: 7}); there || err != nil {
		t.Errorf("another blob: %v, %v", there, err)
	}
}
