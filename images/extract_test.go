package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/imagefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// extract reads the paths out of a fixture.
func extract(t testing.TB, f *fixture, limits limit.Limits, paths ...string) (*imagefs.Tree, error) {
	t.Helper()
	temp := t.TempDir()
	img, err := openFixture(t.Context(), f)
	if err != nil {
		return nil, err
	}
	tree, err := img.Extract(t.Context(), paths, ExtractOptions{Limits: limits, Temp: temp})
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

func TestHostileManifestsAreRefused(t *testing.T) {
	base := func() *fixture { return simple(t, "x") }
	cases := map[string]struct {
		f     *fixture
		class error
		text  string
	}{
		"digest-traversal": {base().change(t, func(m *v1.Manifest) { m.Layers[0].Digest = "../../x" }),
			fault.ErrInvalid, "invalid digest"},
		"digest-md5": {base().change(t,
			func(m *v1.Manifest) { m.Layers[0].Digest = "md5:d41d8cd98f00b204e9800998ecf8427e" }), fault.ErrInvalid,
			"algorithm"},
		"digest-sha512": {base().change(t,
			func(m *v1.Manifest) { m.Layers[0].Digest = digest.SHA512.FromString("x") }), fault.ErrInvalid,
			"algorithm"},
		"size-wrong": {base().change(t, func(m *v1.Manifest) { m.Layers[1].Size-- }), fault.ErrIntegrity, "size"},
		"size-long":  {base().change(t, func(m *v1.Manifest) { m.Layers[1].Size++ }), fault.ErrIntegrity, "size"},
		"size-negative": {base().change(t, func(m *v1.Manifest) { m.Layers[1].Size = -1 }), fault.ErrInvalid,
			"size"},
		"size-huge": {base().change(t, func(m *v1.Manifest) { m.Layers[1].Size = 1 << 62 }), fault.ErrLimit,
			"bytes"},
		"foreign-layer": {base().change(t,
			func(m *v1.Manifest) { m.Layers[0].URLs = []string{"file:///etc/passwd"} }), fault.ErrInvalid,
			"foreign layer"},
		"diffids-short": {base().change(t, func(m *v1.Manifest) { m.Layers = m.Layers[:1] }), fault.ErrIntegrity,
			"diff_ids"},
		"artifact": {base().change(t, func(m *v1.Manifest) { m.Config.MediaType = v1.MediaTypeEmptyJSON }),
			fault.ErrInvalid, "not an image"},
		"20 000 layers": {base().change(t, func(m *v1.Manifest) {
			for len(m.Layers) < 20_000 {
				m.Layers = append(m.Layers, m.Layers[0])
			}
		}), fault.ErrLimit, "layers"},
		"config-5MiB": {base().change(t, func(m *v1.Manifest) { m.Config.Size = 5 << 20 }), fault.ErrLimit,
			"limit 4194304"},
	}
	add := func(name string, manifest, kind string, class error, text string) {
		f := base()
		f.manifest, f.kind = []byte(manifest), kind
		cases[name] = struct {
			f     *fixture
			class error
			text  string
		}{f, class, text}
	}
	add("ambiguous", `{"manifests":[],"layers":[]}`, v1.MediaTypeImageManifest, fault.ErrInvalid, "ambiguous")
	add("no-content-type", `{"layers":[]}`, "", fault.ErrInvalid, "media type")
	add("content-type-conflict", `{"mediaType":"`+v1.MediaTypeImageManifest+`"}`, v1.MediaTypeImageIndex,
		fault.ErrInvalid, "media type")
	add("html", `<html>`, "text/html", fault.ErrInvalid, "not a manifest")
	add("manifest-5MiB", strings.Repeat(" ", 5<<20), v1.MediaTypeImageManifest, fault.ErrLimit, "4194304")
	add("platform-missing",
		`{"manifests":[{"digest":"`+digest.FromString("x").String()+
			`","platform":{"os":"linux","architecture":"arm64"}}]}`, v1.MediaTypeImageIndex, fault.ErrInvalid,
		"linux/arm64")
	add("index-10000", `{"manifests":[{}`+strings.Repeat(",{}", 9999)+`]}`, v1.MediaTypeImageIndex, fault.ErrLimit,
		"10000 entries")
	flipped := base()
	for d, b := range flipped.blobs {
		b = bytes.Clone(b)
		b[len(b)-1] ^= 1
		flipped.blobs[d] = b
	}
	cases["blob-bitflip"] = struct {
		f     *fixture
		class error
		text  string
	}{flipped, fault.ErrIntegrity, "digest mismatch"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := extract(t, c.f, limit.Limits{}, "configs")
			if !errors.Is(err, c.class) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %.300v, want %v and %q", err, c.class, c.text)
			}
		})
	}
}

func TestIndexInIndexEnds(t *testing.T) {
	f := simple(t, "x")
	inner := []byte(`{"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[]}`)
	for range 50 {
		d := digest.FromBytes(inner)
		f.blobs[d] = inner
		inner = []byte(
			fmt.Sprintf(
				`{"mediaType":%q,"manifests":[{"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64"}}]}`, v1.MediaTypeImageIndex, d, len(inner)))
	}
	f.manifest, f.kind = inner, v1.MediaTypeImageIndex
	nested := &nestedIndex{f}
	if _, err := openFixture(t.Context(), nested); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("got %v", err)
	}
}

// nestedIndex says of everything that it is an index.
type nestedIndex struct{ *fixture }

func (n *nestedIndex) GetManifest(_ context.Context, d *digest.Digest) ([]byte, string, error) {
	if d != nil {
		return n.blobs[*d], v1.MediaTypeImageIndex, nil
	}
	return n.manifest, n.kind, nil
}

var _ types.ImageSource = (*nestedIndex)(nil)

func TestOpenLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	mustCopy(t, simple(t, "hello"), "oci:"+dir+":v1")
	img, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), "oci:"+dir+":v1", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if at, ok := img.Label("catalog"); !ok || at != "/configs" {
		t.Errorf("label: %q", at)
	}
	tree, err := img.Extract(t.Context(), []string{"/configs"}, ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if got := content(t, tree); got["configs/a/catalog.yaml"] != "hello" || len(got) != 1 {
		t.Errorf("got %v", got)
	}
	for _, name := range []string{"oci:" + dir + ":v2", "oci:" + dir + "x", "docker://a/b", "dir"} {
		if _, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), name, v1.Platform{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHostileLayoutsAreRefused(t *testing.T) {
	fifo := func(name string) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		}
	}
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	img := simple(t, "x")
	blob := filepath.Join(v1.ImageBlobsDir, "sha256", digest.FromBytes(img.manifest).Encoded())
	cases := map[string]func(string) error{
		"FIFO as index":    fifo(v1.ImageIndexFile),
		"FIFO as manifest": fifo(blob),
		"FIFO as version":  fifo(v1.ImageLayoutFile),
		"link outside": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, blob)), os.Symlink("/etc/passwd", filepath.Join(dir, blob)))
		},
		"empty index":   write(v1.ImageIndexFile, ""),
		"schema 1":      write(v1.ImageIndexFile, `{"schemaVersion":1}`),
		"other version": write(v1.ImageLayoutFile, `{"imageLayoutVersion":"2.0.0"}`),
		"digest is a path": write(v1.ImageIndexFile,
			`{"schemaVersion":2,"manifests":[{"mediaType":"`+v1.MediaTypeImageManifest+
				`","digest":"sha256:../../../../etc/passwd"}]}`),
		"manifest changed": write(blob,
			strings.Replace(string(img.manifest), `"schemaVersion":2`, `"schemaVersion": 2`, 1)),
		"index entry of no size": write(v1.ImageIndexFile, `{"schemaVersion":2,"manifests":"x"}`),
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layout")
			mustCopy(t, img, "oci:"+dir)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				img, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), "oci:"+dir, v1.Platform{})
				if err == nil {
					img.Close()
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(5 * time.Second):
				t.Error("it hangs")
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(simple(f, "x").manifest, v1.MediaTypeImageManifest)
	f.Add([]byte(`{"manifests":[{"digest":"sha256:x"}]}`), v1.MediaTypeImageIndex)
	f.Fuzz(func(t *testing.T, text []byte, kind string) {
		src := simple(t, "x")
		src.manifest, src.kind = text, kind
		img, err := openFixture(t.Context(), src)
		if err == nil && !json.Valid(text) {
			t.Errorf("accepted %q as %v", text, img.Digest)
		}
	})
}
