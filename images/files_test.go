package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// layered is an image whose upper layer replaces one file and removes another.
func layered(t *testing.T) *Image {
	t.Helper()
	image, err := openFixture(t.Context(), newFixture(t,
		gzipLayer(t, tarOf(t, entry{name: "index.db", body: "old"}, entry{name: "gone", body: "x"})),
		plainLayer(tarOf(t, entry{name: "./index.db", body: "new content"}, entry{name: ".wh.gone"},
			entry{name: "link", link: "index.db", kind: tar.TypeSymlink}))))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestCopyFile(t *testing.T) {
	image := layered(t)
	for name, want := range map[string]string{"index.db": "new content", "gone": "", "nosuch": "", "link": ""} {
		var got bytes.Buffer
		size, err := image.CopyFile(t.Context(), name, &got, ExtractOptions{})
		switch {
		case want != "" && (err != nil || size != int64(len(want)) || got.String() != want):
			t.Errorf("%s: %q, %d, %v", name, got.String(), size, err)
		case want == "" && err == nil:
			t.Errorf("%s: %q", name, got.String())
		case want == "" && name != "link" && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := image.CopyFile(t.Context(), "index.db", io.Discard, ExtractOptions{Limits: Limits{File: 5}})
	if !errors.Is(err, fault.ErrLimit) {
		t.Error(err)
	}
}

func TestLayerReader(t *testing.T) {
	image := layered(t)
	var got []string
	take := func(name string, h *tar.Header, content io.Reader) error {
		text, err := io.ReadAll(content)
		got = append(got, name+"="+string(text)+h.Linkname)
		return err
	}
	r := NewLayerReader(Limits{})
	for n := range image.Layers {
		if size, err := r.Read(t.Context(), image, n, take); err != nil || size < 1024 || size%512 != 0 {
			t.Errorf("layer %d: %d, %v", n, size, err)
		}
	}
	want := "index.db=old gone=x index.db=new content .wh.gone= link=index.db"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %q", text)
	}
	stop := errors.New("stop")
	_, err := r.Read(t.Context(), image, 0, func(string, *tar.Header, io.Reader) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestBlob(t *testing.T) {
	image := layered(t)
	read := func(d v1.Descriptor) ([]byte, error) {
		r, err := image.Blob(t.Context(), d)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	layer := image.Layers[0]
	if text, err := read(layer); err != nil || digest.FromBytes(text) != layer.Digest {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	layer.Size++
	if _, err := read(layer); err == nil {
		t.Error("a blob of another size was read")
	}
	if _, err := read(v1.Descriptor{Digest: "../x"}); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}

func TestDemands(t *testing.T) {
	accepts := `{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{` +
		`"signed.test":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/key"}],"rejected.test":[{"type":"reject"}]}}}`
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(accepts), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options ClientOptions
		want    bool
	}{
		"example.com/a":   {ClientOptions{Policy: policy.Read, PolicyFile: file}, false},
		"signed.test/a":   {ClientOptions{Policy: policy.Read, PolicyFile: file}, true},
		"rejected.test/a": {ClientOptions{Policy: policy.Read, PolicyFile: file}, true},
		"signed.test/b":   {ClientOptions{NoPolicy: true}, false},
		"example.com/b":   {ClientOptions{NoPolicy: true, RequireSigned: true}, true},
	} {
		client, err := NewClient(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := client.Demands(t.Context(), name); err != nil || got != c.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
		if _, err := client.Demands(t.Context(), "A/B:"); err == nil || !strings.Contains(err.Error(), "reference") {
			t.Errorf("no name: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What the built-in transports cannot write is refused when a name is parsed, and what they do not do when it is asked.
func TestNamesThatCannotBeWritten(t *testing.T) {
	for text, want := range map[string]string{
		"oci:":                      "empty",
		"oci:dir:a b":               "no name for an image",
		"oci:dir:@0":                "can be read but not written",
		"oci:a\x00b":                "NUL",
		"oci-archive:.:v1":          "is a directory",
		"docker-archive:x.tar:a@b:": "docker-archive",
		"docker-archive:x.tar:example.com/a@sha256:" + strings.Repeat("0", 64): "",
	} {
		if _, err := BuiltIn().Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, kinds := range map[string][2]string{ // a media type that is taken, and one that is not
		"oci:dir:v1":                {v1.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.v2+json"},
		"docker-archive:x.tar:a:v1": {v1.MediaTypeImageManifest, v1.MediaTypeImageIndex},
	} {
		row := BuiltIn().Row(parse(t, text).Transport)
		if err := row.Takes(kinds[0]); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := row.Takes(kinds[1]); err == nil {
			t.Errorf("%s takes %s", text, kinds[1])
		}
	}
	client := anyImage(t)
	layout := filepath.Join(t.TempDir(), "from.oci")
	testregistry.Image{}.WriteLayout(t, layout, "v1")
	for _, text := range []string{"dir:" + t.TempDir(), "docker-archive:" + filepath.Join(t.TempDir(), "x.tar")} {
		_, err := client.Copy(t.Context(), "oci:"+layout+":v1", parse(t, text), referrers.Kinds{},
			CopyOptions{Transports: BuiltIn()})
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
