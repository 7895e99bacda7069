package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// blob is content with its descriptor.
type blob struct {
	v1.Descriptor
	content []byte
}

func blobOf(mediaType string, content []byte) blob {
	return blob{v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))},
		content}
}

// layer returns a blob of a size that does not compress, the same for each seed.
func layer(seed string, size int) blob {
	b := make([]byte, size)
	sum := digest.FromString(seed).Encoded()
	rand.NewChaCha8([32]byte([]byte(sum[:32]))).Read(b)
	return blobOf(v1.MediaTypeImageLayer, b)
}

// large is the size in bytes of a blob that is not sent in one piece: more than places keep in memory or send at once.
const large = 3<<20 + 17

// empty is the blob that artifacts refer to.
var empty = blobOf(v1.MediaTypeEmptyJSON, []byte("{}"))

// image is a manifest or an index, and what it refers to.
type image struct {
	blob
	blobs    []blob
	children []image
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newImage returns an image with a configuration of its own.
func newImage(t testing.TB, name string, layers ...blob) image {
	t.Helper()
	config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: "amd64"},
		Config: v1.ImageConfig{Labels: map[string]string{"name": name}}}
	config.RootFS.Type = "layers"
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Layers: []v1.Descriptor{}}
	for _, l := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.Digest)
		m.Layers = append(m.Layers, l.Descriptor)
	}
	blobs := append([]blob{blobOf(v1.MediaTypeImageConfig, marshal(t, config))}, layers...)
	m.Config = blobs[0].Descriptor
	return image{blob: blobOf(m.MediaType, marshal(t, m)), blobs: blobs}
}

// newIndex returns an index of images.
func newIndex(t testing.TB, children ...image) image {
	t.Helper()
	x := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for i, c := range children {
		d := c.Descriptor
		d.Platform = &v1.Platform{OS: "linux", Architecture: fmt.Sprintf("arch%d", i)}
		x.Manifests = append(x.Manifests, d)
	}
	return image{blob: blobOf(x.MediaType, marshal(t, x)), children: children}
}

// newArtifact returns a manifest whose subject is another one, unless that is nil.
func newArtifact(t testing.TB, subject *v1.Descriptor, annotations map[string]string) image {
	t.Helper()
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		ArtifactType: "application/x-test", Config: empty.Descriptor, Layers: []v1.Descriptor{empty.Descriptor},
		Subject: subject, Annotations: annotations}
	return image{blob: blobOf(m.MediaType, marshal(t, m)), blobs: []blob{empty}}
}

// write writes an image as copying does: blobs, manifests, the tag.
func (i image) write(ctx context.Context, w store.Writer, tag string) error {
	for _, b := range i.blobs {
		if err := store.WriteBytes(ctx, w, b.Descriptor, b.content); err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
	for _, c := range i.children {
		if err := c.write(ctx, w, ""); err != nil {
			return err
		}
	}
	if err := w.WriteManifest(ctx, i.content, i.MediaType, store.WriteOptions{Tag: tag}); err != nil {
		return fmt.Errorf("manifest %s: %w", i.Digest, err)
	}
	return nil
}

// check compares an image at a place, byte for byte, with what was written.
func (i image) check(t testing.TB, r store.Reader, name string) {
	t.Helper()
	text, mediaType, err := r.Manifest(t.Context(), name)
	if err != nil || !bytes.Equal(text, i.content) || mediaType != i.MediaType {
		t.Errorf("%s: %s %s: %v", name, mediaType, text, err)
		return
	}
	for _, b := range i.blobs {
		if content, err := read(t, r, b.Descriptor, 0); err != nil || !bytes.Equal(content, b.content) {
			t.Errorf("%s: blob %s: %d bytes of %d: %v", name, b.Digest, len(content), b.Size, err)
		}
	}
	for _, c := range i.children {
		c.check(t, r, c.Digest.String())
	}
}

// read reads a blob from an offset on.
func read(t testing.TB, r store.Reader, d v1.Descriptor, from int64) ([]byte, error) {
	t.Helper()
	body, err := r.Blob(t.Context(), d, from)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(body)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	return content, err
}

// unread is content that must not be opened.
func unread(t testing.TB) store.Content {
	return store.Content{Open: func(context.Context, int64) (io.ReadCloser, error) {
		t.Error("the content is opened")
		return nil, errUnread
	}}
}

var errUnread = fmt.Errorf("content that is not to be opened")
