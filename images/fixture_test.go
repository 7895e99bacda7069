package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/libimage"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
)

// fixture is an image whose every byte a test can choose. It is its own reference and source.
type fixture struct {
	manifest []byte
	kind     string
	blobs    map[digest.Digest][]byte
	broken   digest.Digest // a blob that ends early
	opened   func(digest.Digest)
}

// rawLayer is a layer as it is in the image.
type rawLayer struct {
	content   []byte
	mediaType string
	diffID    digest.Digest
}

func newFixture(t testing.TB, layers ...rawLayer) *fixture {
	t.Helper()
	f := &fixture{kind: v1.MediaTypeImageManifest, blobs: map[digest.Digest][]byte{}}
	config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, RootFS: v1.RootFS{Type: "layers"}}
	config.Config.Labels = map[string]string{"catalog": "/configs"}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: f.kind}
	for _, l := range layers {
		f.blobs[digest.FromBytes(l.content)] = l.content
		m.Layers = append(m.Layers,
			v1.Descriptor{MediaType: l.mediaType, Digest: digest.FromBytes(l.content), Size: int64(len(l.content))})
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.diffID)
	}
	text := mustJSON(t, config)
	f.blobs[digest.FromBytes(text)] = text
	m.Config = v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromBytes(text), Size: int64(len(text))}
	f.manifest = mustJSON(t, m)
	return f
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// change replaces the manifest by one that edit has worked on.
func (f *fixture) change(t testing.TB, edit func(*v1.Manifest)) *fixture {
	t.Helper()
	var m v1.Manifest
	if err := json.Unmarshal(f.manifest, &m); err != nil {
		t.Fatal(err)
	}
	edit(&m)
	f.manifest = mustJSON(t, m)
	return f
}

func (f *fixture) Transport() types.ImageTransport         { return fixtureTransport{} }
func (f *fixture) StringWithinTransport() string           { return "fixture" }
func (f *fixture) DockerReference() reference.Named        { return nil }
func (f *fixture) PolicyConfigurationIdentity() string     { return "" }
func (f *fixture) PolicyConfigurationNamespaces() []string { return nil }
func (f *fixture) NewImage(context.Context, *types.SystemContext) (types.ImageCloser, error) {
	return nil, errors.ErrUnsupported
}
func (f *fixture) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return f, nil
}
func (f *fixture) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errors.ErrUnsupported
}
func (f *fixture) DeleteImage(context.Context, *types.SystemContext) error {
	return errors.ErrUnsupported
}
func (f *fixture) Reference() types.ImageReference { return f }
func (f *fixture) Close() error                    { return nil }
func (f *fixture) HasThreadSafeGetBlob() bool      { return true }
func (f *fixture) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	return nil, nil
}
func (f *fixture) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}

func (f *fixture) GetManifest(_ context.Context, d *digest.Digest) ([]byte, string, error) {
	if d != nil {
		return f.blobs[*d], v1.MediaTypeImageManifest, nil
	}
	return f.manifest, f.kind, nil
}

func (f *fixture) GetBlob(_ context.Context, info types.BlobInfo, _ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	b, ok := f.blobs[info.Digest]
	if !ok {
		return nil, 0, fmt.Errorf("no blob %s", info.Digest)
	}
	if f.opened != nil {
		f.opened(info.Digest)
	}
	if info.Digest == f.broken {
		b = b[:len(b)/2]
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

type fixtureTransport struct{}

func (fixtureTransport) Name() string { return "test" }
func (fixtureTransport) ParseReference(string) (types.ImageReference, error) {
	return nil, errors.ErrUnsupported
}
func (fixtureTransport) ValidatePolicyConfigurationScope(string) error { return nil }

// openFixture opens an image of the library.
func openFixture(ctx context.Context, src types.ImageSource) (*Image, error) {
	place, top, err := libraryReader(ctx, src)
	if err != nil {
		return nil, err
	}
	s, err := At(ctx, place, top)
	if err != nil {
		return nil, err
	}
	return s.Image(ctx, v1.Platform{})
}

// opened returns an image for Copy, until the test ends.
func opened(t testing.TB, c *Client, name string) types.ImageReference {
	t.Helper()
	src, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return libimage.Reference(src, src.Top)
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

// simple is a small image whose content depends on seed.
func simple(t testing.TB, seed string) *fixture {
	t.Helper()
	return newFixture(t, gzipLayer(t, tarOf(t, entry{name: "shared", body: "the same in all"})),
		gzipLayer(t, tarOf(t, entry{name: "configs/a/catalog.yaml", body: seed})))
}

// transports are all that there are.
var transports = library.Transports(BuiltIn())

// to returns a destination.
func to(at transport.Name, path, name string) transport.Destination {
	return transport.Destination{Transport: at, Path: path, Name: name}
}

func parse(t testing.TB, text string) transport.Destination {
	t.Helper()
	d, err := transports.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dests are destinations as a user writes them.
func dests(t testing.TB, texts ...string) (all []transport.Destination) {
	t.Helper()
	for _, text := range texts {
		all = append(all, parse(t, text))
	}
	return all
}

// snapshot is everything below a directory, as text.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, dir) + " " + d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + digest.FromBytes(b).Encoded()
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
