package bundle_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The recorded images, built by docker, unpack to their original directories.
func TestUnpackRecordedImages(t *testing.T) {
	registry := testregistry.Recorded(t)
	dir := t.TempDir()
	conf := registry.RegistriesConf(t, testregistry.RecordedHost)
	for name, ref := range map[string]string{
		"etcd-v0.9.4": "community/etcd:v0.9.4", "skupper-operator-v1.9.6": "community/skupper-operator:v1.9.6",
		"synth-constraint-v0.1.0": "synth/synth-constraint:v0.1.0",
	} {
		bundle := testbundles.Write(t, dir, name)
		clitest.Done(t, dir, "bindery", "bundle", "unpack", testregistry.RecordedHost+"/"+ref, "-o", name+".out",
			"--registries-conf", conf, "--no-cache", "-v")
		for _, part := range []string{"manifests", "metadata"} {
			is, want := listFiles(t, filepath.Join(dir, name+".out", part)), listFiles(t, filepath.Join(bundle, part))
			if is != want || want == "" {
				t.Errorf("%s: %s has\n%s\nwant\n%s", name, part, is, want)
			}
		}
	}
}

// listFiles lists the files of a directory with the digests of their contents.
func listFiles(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name() + " " + digest.FromString(clitest.ReadFile(t, filepath.Join(dir, e.Name()))).String() + "\n")
	}
	return b.String()
}

// rawImage writes an OCI layout with one layer of the given entries; the content of a file is its name.
func rawImage(t *testing.T, dir string, entries ...tar.Header) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(h.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put := func(mediaType string, content []byte) v1.Descriptor {
		d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		path := filepath.Join(dir, "blobs", "sha256", d.Digest.Encoded())
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return d
	}
	text := func(v any) []byte {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: "amd64"},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer.Bytes())}}}
	manifest := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Layers: []v1.Descriptor{put(v1.MediaTypeImageLayer, layer.Bytes())},
		Config: put(v1.MediaTypeImageConfig, text(config))}
	d := put(v1.MediaTypeImageManifest, text(manifest))
	d.Annotations = map[string]string{v1.AnnotationRefName: "v1"}
	for name, content := range map[string][]byte{
		"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": text(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
			Manifests: []v1.Descriptor{d}}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Images with entries outside the directory, or of special kinds, are refused without writing anything.
func TestUnpackHostileImages(t *testing.T) {
	canary := t.TempDir()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	for name, c := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"dotdot":   {[]tar.Header{file("../../canary")}, "leaves the image root"},
		"absolute": {[]tar.Header{file(canary + "/w")}, "absolute path"},
		"link parent": {[]tar.Header{{Name: "manifests", Typeflag: tar.TypeSymlink, Linkname: canary},
			file("manifests/w")}, "symlink"},
		"relative link": {[]tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "../../../canary"},
			file("a/w")}, "symlink"},
		"hard link": {[]tar.Header{{Name: "manifests/a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
			"hard link"},
		"device": {[]tar.Header{{Name: "manifests/a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
			"device"},
		"fifo":         {[]tar.Header{{Name: "manifests/a", Typeflag: tar.TypeFifo}}, "FIFO"},
		"twice":        {[]tar.Header{file("manifests/a"), file("manifests/./a")}, "appears twice"},
		"below a file": {[]tar.Header{file("manifests"), file("manifests/a")}, "is below the file"},
		"backslash":    {[]tar.Header{file(`..\..\w`)}, "backslash"},
		"no bundle":    {[]tar.Header{file("etc/motd")}, "annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rawImage(t, filepath.Join(dir, "img"), c.entries...)
			before := clitest.Snapshot(t, dir)
			got := clitest.RunProgram(t, dir, "bindery", "bundle", "unpack", "oci:img:v1", "-o", "out")
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("%+v without %s", got, c.want)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
			if left, _ := os.ReadDir(canary); len(left) > 0 {
				t.Errorf("written outside: %v", left)
			}
		})
	}
}

// The modes in the image are not used on disk.
func TestUnpackModes(t *testing.T) {
	dir := t.TempDir()
	rawImage(t, filepath.Join(dir, "img"), tar.Header{Name: "manifests/", Typeflag: tar.TypeDir, Mode: 0o1777},
		tar.Header{Name: "manifests/a", Typeflag: tar.TypeReg, Mode: 0o6777, Uid: 12345})
	clitest.Done(t, dir, "bindery", "bundle", "unpack", "oci:img:v1", "-o", "out", "-v")
	if got, want := clitest.Snapshot(t, filepath.Join(dir, "out")),
		". drwxr-xr-x 0\nmanifests drwxr-xr-x 0\nmanifests/a -rw-r--r-- 11\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnpackErrors(t *testing.T) {
	dir := t.TempDir()
	rawImage(t, filepath.Join(dir, "img"), tar.Header{Name: "manifests/a", Typeflag: tar.TypeReg, Mode: 0o644})
	for args, want := range map[string]string{
		"oci:nosuch:v1": "nosuch", "": "accepts 1 arg(s), received 0",
		"oci:img:v1 -o img/x -v --max-entries 0 --max-file-size 1KiB --max-image-size x": "invalid --max-image-size",
		"oci:img:v1 -v --max-file-size 5 -o out":                                         "limit",
		"127.0.0.1:1/x:v1 -o out --use-http --retries 0":                                 "127.0.0.1:1",
		"oci:img:v1 --error-format json -o out":                                          `"class":3`,
		"oci:img:v1 -o":                                                                  "flag needs an argument",
	} {
		before := clitest.Snapshot(t, dir)
		if got := clitest.RunProgram(t, dir, "bindery",
			append([]string{"bundle", "unpack"}, strings.Fields(args)...)...); got.Status != 1 ||
			!strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v without %s", args, got, want)
		}
		if after := clitest.Snapshot(t, dir); after != before {
			t.Errorf("%s: files before\n%s\nafter\n%s", args, before, after)
		}
	}
}
