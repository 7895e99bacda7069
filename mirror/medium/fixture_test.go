package medium_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// segmentName is the name of a segment, which is counted from 1.
func segmentName(n int) string { return fmt.Sprintf("mirror_%06d.tar", n) }

// blob is content with its descriptor.
type blob struct {
	v1.Descriptor
	content []byte
}

func blobOf(mediaType string, content []byte) blob {
	return blob{v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))},
		content}
}

// noise is content of a length that does not compress, the same for each seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// image is a manifest and what it refers to.
type image struct {
	manifest blob
	blobs    []blob
	children []image
}

func imageOf(t testing.TB, subject *v1.Descriptor, blobs ...blob) image {
	t.Helper()
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: blobs[0].Descriptor, Subject: subject}
	for _, b := range blobs[1:] {
		m.Layers = append(m.Layers, b.Descriptor)
	}
	if subject != nil {
		m.ArtifactType = "application/x-test"
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return image{manifest: blobOf(v1.MediaTypeImageManifest, text), blobs: blobs}
}

func indexOf(t testing.TB, children ...image) image {
	t.Helper()
	x := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for i, c := range children {
		d := c.manifest.Descriptor
		d.Platform = &v1.Platform{OS: "linux", Architecture: fmt.Sprintf("a%d", i)}
		x.Manifests = append(x.Manifests, d)
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return image{manifest: blobOf(v1.MediaTypeImageIndex, text), children: children}
}

const layerType = v1.MediaTypeImageLayer

// simple returns an image with layers of sizes; each has its own configuration, layers are shared by seed.
func simple(t testing.TB, name string, seed uint64, sizes ...int) image {
	t.Helper()
	blobs := []blob{blobOf(v1.MediaTypeImageConfig, []byte(fmt.Sprintf(
		`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"config":{"Labels":{"n":%q}}}`,
		name)))}
	for i, size := range sizes {
		blobs = append(blobs, blobOf(layerType, noise(seed+uint64(i), size)))
	}
	return imageOf(t, nil, blobs...)
}

func opener(content []byte) store.Content { return store.Bytes(content) }

// write writes an image, as the copying of images does: blobs, children, the manifest, the tag.
func write(t testing.TB, r store.Writer, i image, tag string) {
	t.Helper()
	if err := tryWrite(r, i, tag); err != nil {
		t.Fatal(err)
	}
}

func tryWrite(r store.Writer, i image, tag string) error {
	ctx := context.Background()
	for _, b := range i.blobs {
		if _, err := r.WriteBlob(ctx, b.Descriptor, opener(b.content)); err != nil {
			return err
		}
	}
	for _, c := range i.children {
		if err := tryWrite(r, c, ""); err != nil {
			return err
		}
	}
	if tag == "" {
		return r.WriteManifest(ctx, i.manifest.content, i.manifest.MediaType, store.WriteOptions{})
	}
	return r.UpdateTag(ctx, tag, func([]byte) ([]byte, string, error) {
		return i.manifest.content, i.manifest.MediaType, nil
	})
}

// same compares an image in an archive with what was written.
func same(t testing.TB, r store.Reader, i image, name string) {
	t.Helper()
	ctx := context.Background()
	text, mediaType, err := r.Manifest(ctx, name)
	if err != nil || !bytes.Equal(text, i.manifest.content) || mediaType != i.manifest.MediaType {
		t.Fatalf("%s: %s %s %v", name, mediaType, text, err)
	}
	if d, err := r.Head(ctx, name); err != nil || d.Digest != i.manifest.Digest || d.Size != i.manifest.Size ||
		d.MediaType != mediaType {
		t.Fatalf("%s: %v %v", name, d, err)
	}
	for _, b := range i.blobs {
		f, err := r.Blob(ctx, b.Descriptor, 0)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if f.Close() != nil || err != nil || !bytes.Equal(content, b.content) {
			t.Fatalf("%s: %s: %v", name, b.Digest, err)
		}
	}
	for _, c := range i.children {
		same(t, r, c, c.manifest.Digest.String())
	}
}

func create(t testing.TB, dir string, o medium.Options) *medium.Writer {
	t.Helper()
	w, err := medium.Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func finish(t testing.TB, w *medium.Writer, about medium.Contents) *medium.Account {
	t.Helper()
	account, err := w.Finish(context.Background(), about)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func read(t testing.TB, dir string, earlier ...string) *medium.Reader {
	t.Helper()
	r, err := medium.Open(context.Background(), dir, earlier...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// names lists a directory.
func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func size(t testing.TB, dir, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
