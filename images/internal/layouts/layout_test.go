package layouts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// All that index.json leads to is in use, also what an index names after a manifest that is not in the layout, and
// where index.json names something that is no manifest.
func TestReferenced(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, blobsDir, "sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(text []byte, mediaType string) v1.Descriptor {
		d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
		if err := os.WriteFile(BlobPath(dir, d.Digest), text, 0o644); err != nil {
			t.Fatal(err)
		}
		return d
	}
	encode := func(m any) []byte {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	index := func(entries ...v1.Descriptor) []byte {
		return encode(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
			Manifests: entries})
	}
	config, layer := put([]byte("{}"), v1.MediaTypeImageConfig), put([]byte("layer"), v1.MediaTypeImageLayer)
	image := put(encode(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, Config: config,
		Layers: []v1.Descriptor{layer}}), v1.MediaTypeImageManifest)
	absent := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("absent"), Size: 6}
	top := put(index(absent, image), v1.MediaTypeImageIndex)
	text := put([]byte("a text"), "text/plain")
	if err := os.WriteFile(filepath.Join(dir, indexFile), index(text, top), 0o644); err != nil {
		t.Fatal(err)
	}
	used, err := referenced(dir)
	for _, d := range []v1.Descriptor{top, image, config, layer, text} {
		if err != nil || !used[d.Digest] {
			t.Errorf("%s %s is not in use: %v", d.MediaType, d.Digest, err)
		}
	}
	if used[digest.FromString("another")] {
		t.Error("everything is in use")
	}
}
