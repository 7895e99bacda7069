package imagefs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// rawLayer is a layer as it is in the image.
type rawLayer struct {
	content   []byte
	mediaType string
	diffID    digest.Digest
}

// entry is one entry of a test's archive.
type entry struct {
	name, body, link string
	kind             byte
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.body))}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func plainLayer(content []byte) rawLayer {
	return rawLayer{content, v1.MediaTypeImageLayer, digest.FromBytes(content)}
}

func gzipLayer(t testing.TB, content []byte) rawLayer {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return rawLayer{b.Bytes(), v1.MediaTypeImageLayerGzip, digest.FromBytes(content)}
}

func zstdLayer(t testing.TB, content []byte, o ...zstd.EOption) rawLayer {
	t.Helper()
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		t.Fatal(err)
	}
	return rawLayer{w.EncodeAll(content, nil), v1.MediaTypeImageLayerZstd, digest.FromBytes(content)}
}

// stack returns the layers of an image. opened, unless nil, is called with each that is opened.
func stack(opened func(digest.Digest), layers ...rawLayer) *Layers {
	s := &Layers{}
	contents := map[digest.Digest][]byte{}
	for _, l := range layers {
		d := digest.FromBytes(l.content)
		contents[d] = l.content
		s.Layers = append(s.Layers, v1.Descriptor{MediaType: l.mediaType, Digest: d, Size: int64(len(l.content))})
		s.DiffIDs = append(s.DiffIDs, l.diffID)
	}
	s.Open = func(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
		if opened != nil {
			opened(d.Digest)
		}
		return io.NopCloser(verify.NewReader(bytes.NewReader(contents[d.Digest]), d.Digest, d.Size)), nil
	}
	return s
}

// extract reads the paths out of layers. After an error nothing is left behind.
func extract(t testing.TB, s *Layers, limits limit.Limits, paths ...string) (*Tree, error) {
	t.Helper()
	temp := t.TempDir()
	tree, err := s.Extract(t.Context(), paths, limits, temp)
	if err != nil {
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	return tree, err
}

// content is the files of a tree, as text.
func content(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = fs.ReadFile(fsys, path)
			out[path] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
