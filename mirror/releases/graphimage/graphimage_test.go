package graphimage_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/releases/graphimage"
)

// open opens a base image.
func open(t *testing.T, name string) *images.Source {
	t.Helper()
	c, err := images.NewClient(images.ClientOptions{NoPolicy: true, Options: registries.Options{Temp: t.TempDir(),
		Registry: registries.Config{PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// file makes a file.
func file(t *testing.T, content []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// packed is an archive, compressed.
func packed(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range members {
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// data is small graph data.
func data(t testing.TB) []byte {
	return packed(t, tar.Header{Typeflag: tar.TypeReg, Name: "version", Size: 6})
}

// unpack writes recorded files to a directory.
func unpack(t *testing.T, files map[string][]byte, prefix string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if at, ok := strings.CutPrefix(name, prefix); ok {
			to := filepath.Join(dir, filepath.FromSlash(at))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, text, 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func buildImage(t *testing.T, o graphimage.Options) (*build.Image, error) {
	t.Helper()
	o.Dir = t.TempDir()
	img, err := graphimage.Build(t.Context(), o)
	if err == nil {
		t.Cleanup(func() { img.Close() })
	}
	return img, err
}

// members lists a layer as the recorded images are listed.
func members(t *testing.T, i *images.Image, n int) (lines []string) {
	t.Helper()
	r, err := i.Blob(t.Context(), i.Layers[n])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %c %o %d:%d %d mtime=%d", strings.TrimSuffix(h.Name, "/"), h.Typeflag,
			h.Mode, h.Uid, h.Gid, h.Size, h.ModTime.Unix()))
	}
}

// The image is that of oc-mirror, layer by layer (r10), but for the leading slash in the names of the layer; the
// annotation that names the base; and the entry in the history, which says what it is.
func TestRecorded(t *testing.T) {
	files := recorded.Archive(t, "testdata/recorded.tar.zst")
	text := string(files["graph-image.txt"])
	base := open(t, "oci:"+unpack(t, files, "base/")+":latest")
	var digests []digest.Digest
	for range 2 {
		img, err := buildImage(t, graphimage.Options{Base: base, Data: file(t, files["graph-data.tar.gz"])})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, img.Digest)
		storetest.TestReader(t, img.Store(), img.Top().Digest.String())
		if err := img.Examine(t.Context(), func(s *images.Survey) error {
			if !s.Index || s.MediaType != v1.MediaTypeImageIndex || len(s.Images) != 2 {
				t.Errorf("%s with %d images", s.MediaType, len(s.Images))
			}
			for _, i := range s.Images {
				compare(t, i, text)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// The digest changes only if the bytes of all graph images do.
	const want = "sha256:e6d41b3c06437e08687718ed6c81841b65132e4cc68ae92997b88b2ae6485e93"
	if digests[0] != digests[1] || digests[0] != want {
		t.Errorf("got %s, want twice %s", digests, want)
	}
}

// compare compares the image of one platform with the listing of the recorded one.
func compare(t *testing.T, i images.SurveyedImage, text string) {
	t.Helper()
	_, text, _ = strings.Cut(text, "\n  ## config\n")
	if i.Platform.Architecture == "arm64" {
		_, text, _ = strings.Cut(text, "\n  ## config\n")
	}
	config, listing, _ := strings.Cut(text, "\n  ## layer ")
	var want v1.Image
	if err := json.Unmarshal([]byte(strings.ReplaceAll(config, "<rfc3339>", "2020-01-01T00:00:00Z")), &want); err != nil {
		t.Fatal(err)
	}
	got := i.Config
	if got.Architecture != want.Architecture || got.OS != want.OS || !slices.Equal(got.Config.Cmd, want.Config.Cmd) ||
		!got.Created.Equal(*want.Created) || got.RootFS.Type != want.RootFS.Type ||
		len(got.RootFS.DiffIDs) != 2 || got.RootFS.DiffIDs[0] != want.RootFS.DiffIDs[0] ||
		len(got.History) != 2 || got.History[0].CreatedBy != want.History[0].CreatedBy {
		t.Errorf("%s\nwant %s", i.ConfigText, config)
	}
	if !strings.HasPrefix(listing, i.Layers[0].Digest.String()+"\n") {
		t.Errorf("the layer of the base is %s", i.Layers[0].Digest)
	}
	_, listing, _ = strings.Cut(listing, "\n  ## layer ")
	var wanted []string
	for _, line := range regexp.MustCompile(`(?m)^  /(.*)$`).FindAllStringSubmatch(listing, 5) {
		wanted = append(wanted, line[1])
	}
	if lines := members(t, i.Image, 1); !slices.Equal(lines, wanted) || len(lines) != 5 {
		t.Errorf("%s\nwant %s", strings.Join(lines, "\n"), strings.Join(wanted, "\n"))
	}
}

// bash is a layer with a shell.
var bash = []map[string]string{{"bin/bash": "#!"}}

// Only the images for the platforms are built, and that for linux/amd64.
func TestPlatforms(t *testing.T) {
	r := testregistry.New(t)
	of := func(archs ...string) (all []testregistry.Image) {
		for _, a := range archs {
			all = append(all, testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: a}, Layers: bash})
		}
		return all
	}
	r.AddIndex(t, "base", "three", nil, of("amd64", "arm64", "s390x"), v1.Descriptor{MediaType: v1.MediaTypeImageManifest,
		Digest: r.AddManifest("base", "", v1.MediaTypeImageManifest, []byte(`{"schemaVersion":2}`)), Size: 19,
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}})
	r.AddIndex(t, "base", "ppc", nil, of("ppc64le"))
	r.AddImage(t, "base", "single", of("arm64")[0])
	for _, c := range []struct{ base, platforms, want string }{
		{"three", "", "linux/amd64 linux/arm64 linux/s390x"}, {"three", "linux/s390x", "linux/amd64 linux/s390x"},
		{"three", "linux/ppc64le linux/amd64", "linux/amd64"}, {"ppc", "", "linux/ppc64le"}, {"ppc", "linux/arm64", ""},
		{"single", "", "linux/arm64"}, {"single", "linux/s390x", "linux/arm64"},
	} {
		o := graphimage.Options{Base: open(t, r.Host()+"/base:"+c.base), Data: file(t, data(t))}
		for _, p := range strings.Fields(c.platforms) {
			o.Platforms = append(o.Platforms, v1.Platform{OS: "linux", Architecture: p[len("linux/"):]})
		}
		img, err := buildImage(t, o)
		if err != nil {
			if c.want != "" || !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		var got []string
		for _, p := range img.Platforms {
			got = append(got, platform.Name(p.Platform))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A base without a shell, in any layer, is refused.
func TestBash(t *testing.T) {
	r := testregistry.New(t)
	for n, c := range []struct {
		layers []map[string]string
		links  map[string]string
		good   bool
	}{
		{bash, nil, true},
		{[]map[string]string{{"etc/os-release": ""}, {"bin/bash": ""}, {"x": ""}}, nil, true},
		{[]map[string]string{{"bin/sh": ""}}, map[string]string{"bin/bash": "sh"}, true},
		{[]map[string]string{{"usr/bin/bash": ""}}, map[string]string{"bin": "usr/bin"}, true},
		{[]map[string]string{{"usr/bin/bash": ""}}, map[string]string{"bin": "/usr/bin"}, true},
		{[]map[string]string{{"usr/bin/bash": ""}}, map[string]string{"bin": "opt"}, false},
		{[]map[string]string{{"usr/bin/bash": ""}}, nil, false},
		{[]map[string]string{{"bin/bash/x": "", "bin/sh": ""}}, nil, false},
		{nil, nil, false},
	} {
		tag := fmt.Sprint("v", n)
		r.AddImage(t, "base", tag, testregistry.Image{Layers: c.layers, Links: c.links})
		_, err := buildImage(t, graphimage.Options{Base: open(t, r.Host()+"/base:"+tag), Data: file(t, data(t))})
		if (err == nil) != c.good || err != nil && (!errors.Is(err, fault.ErrInvalid) ||
			!strings.Contains(err.Error(), "base:"+tag+", linux/amd64: invalid: it has no /bin/bash")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// An image of docker's stays one, with what is in its configuration.
func TestDocker(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "base", "oci", testregistry.Image{Layers: bash})
	var m manifest.Schema2
	text := r.Manifest("base", "oci")
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m.MediaType, m.ConfigDescriptor.MediaType = manifest.DockerV2Schema2MediaType, manifest.DockerV2Schema2ConfigMediaType
	m.LayersDescriptors[0].MediaType = manifest.DockerV2Schema2LayerMediaType
	var about v1.Manifest
	if err := json.Unmarshal(text, &about); err != nil {
		t.Fatal(err)
	}
	plain := open(t, r.Host()+"/base:oci")
	base, err := plain.Image(t.Context(), v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	config := []byte(`{"os":"linux","architecture":"amd64","created":"2021-02-03T04:05:06.789Z","docker_version":"1",` +
		`"config":{"Entrypoint":null,"Healthcheck":{"Interval":12345678901234567},"Env":["A=<b>"],"Cmd":["x"]},` +
		`"rootfs":{"type":"layers","diff_ids":["` + base.Config.RootFS.DiffIDs[0].String() + `"]}}`)
	m.ConfigDescriptor.Digest, m.ConfigDescriptor.Size = r.AddBlob(config), int64(len(config))
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	r.AddManifest("base", "docker", manifest.DockerV2Schema2MediaType, text)
	img, err := buildImage(t, graphimage.Options{Base: open(t, r.Host()+"/base:docker"), Data: file(t, data(t))})
	if err != nil {
		t.Fatal(err)
	}
	if img.MediaType != manifest.DockerV2Schema2MediaType {
		t.Error(img.MediaType)
	}
	if err := img.Examine(t.Context(), func(s *images.Survey) error {
		got := string(s.Images[0].ConfigText)
		for _, want := range []string{`"Healthcheck":{"Interval":12345678901234567}`, `"docker_version":"1"`,
			`"created":"2021-02-03T04:05:06.789Z"`, `"Cmd":["/bin/bash","-c","exec cp -rp `, `"Entrypoint":null`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nhas no %s", got, want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Graph data has files and directories, with their modes and times and without what is dangerous.
func TestData(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "base", "v1", testregistry.Image{Layers: bash})
	base := open(t, r.Host()+"/base:v1")
	long := strings.Repeat("a", 120)
	when := time.Unix(1700000000, 0)
	good := packed(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "c0ffee"}},
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./channels/", Mode: 0o2775, Uid: 7, Gid: 8, Uname: "x", ModTime: when},
		tar.Header{Typeflag: tar.TypeReg, Name: "./channels/" + long, Mode: 0o4750, Size: 3, Uid: 7, ModTime: when})
	img, err := buildImage(t, graphimage.Options{Base: base, Data: file(t, good)})
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Examine(t.Context(), func(s *images.Survey) error {
		got := strings.Join(members(t, s.Images[0].Image, 1), "\n")
		const in = "var/lib/cincinnati-graph-data"
		want := in + " 5 755 0:0 0 mtime=0\n" + in + "/channels 5 775 0:0 0 mtime=1700000000\n" + in + "/channels/" +
			long + " 0 750 0:0 3 mtime=1700000000"
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	reg := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	only := func(kind byte, name, link string) []byte {
		return packed(t, tar.Header{Typeflag: kind, Name: name, Linkname: link})
	}
	bomb := packed(t, reg("a", 1<<20), reg("b", 100<<20))
	for name, c := range map[string]struct {
		data   []byte
		limits images.Limits
		want   error
	}{
		"nothing":         {nil, images.Limits{}, nil},
		"a page":          {[]byte("<html>try later</html>"), images.Limits{}, fault.ErrInvalid},
		"no file":         {only(tar.TypeDir, "channels/", ""), images.Limits{}, fault.ErrInvalid},
		"cut off":         {good[:len(good)/2], images.Limits{}, fault.ErrIntegrity},
		"bytes after":     {append(bytes.Clone(good), 'x'), images.Limits{}, fault.ErrIntegrity},
		"above":           {packed(t, reg("../a", 1)), images.Limits{}, fault.ErrInvalid},
		"absolute":        {packed(t, reg("/etc/passwd", 1)), images.Limits{}, fault.ErrInvalid},
		"a link":          {only(tar.TypeSymlink, "a", "b"), images.Limits{}, fault.ErrInvalid},
		"a hard link":     {only(tar.TypeLink, "a", "b"), images.Limits{}, fault.ErrInvalid},
		"a device":        {only(tar.TypeChar, "a", ""), images.Limits{}, fault.ErrInvalid},
		"a file as root":  {packed(t, reg(".", 1)), images.Limits{}, fault.ErrInvalid},
		"a FIFO":          {only(tar.TypeFifo, "a", ""), images.Limits{}, fault.ErrInvalid},
		"a whiteout":      {packed(t, reg("a/.wh..wh..opq", 0)), images.Limits{}, fault.ErrInvalid},
		"a large file":    {packed(t, reg("a", 100)), images.Limits{File: 99}, fault.ErrLimit},
		"many members":    {packed(t, reg("a", 1), reg("b", 1), reg("c", 1)), images.Limits{Entries: 2}, fault.ErrLimit},
		"large":           {bomb, images.Limits{Uncompressed: 10 << 20}, fault.ErrLimit},
		"a bomb":          {bomb, images.Limits{File: 1 << 30}, fault.ErrLimit},
		"a long download": {good, images.Limits{Compressed: 10}, fault.ErrLimit},
	} {
		_, err := buildImage(t, graphimage.Options{Base: base, Data: file(t, c.data), Limits: c.limits})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "graph data: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Graph data comes from a server or a file.
func TestDownload(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/graph-data" {
			http.Error(w, "not here", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("data"))
	}))
	t.Cleanup(s.Close)
	c, err := webclient.NewClient(t.Context(), webclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	local := file(t, []byte("data")).Name()
	for _, from := range []string{s.URL + "/graph-data", local, "file://" + local} {
		dir := t.TempDir()
		f, err := graphimage.Download(t.Context(), c, from, dir)
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		text, err := io.ReadAll(f)
		if err != nil || string(text) != "data" || f.Close() != nil {
			t.Errorf("%s: %q, %v", from, text, err)
		}
		if (filepath.Dir(f.Name()) == dir) != strings.HasPrefix(from, "http") {
			t.Errorf("%s: in %s", from, f.Name())
		}
	}
	for from, want := range map[string]string{s.URL + "/x": `status 404, text/plain; charset=utf-8: "not here"`,
		"ftp://h/x": "is no URL", "http://127.0.0.1:1/": "refused", "/nowhere": "no such file"} {
		if _, err := graphimage.Download(t.Context(), c, from, t.TempDir()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", from, err)
		}
	}
}

func FuzzData(f *testing.F) {
	for _, h := range []tar.Header{{Typeflag: tar.TypeReg, Name: "./channels/a", Size: 3},
		{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "b"}, {Typeflag: tar.TypeReg, Name: "../a"},
		{Typeflag: tar.TypeReg, Name: "."}} {
		z, err := gzip.NewReader(bytes.NewReader(packed(f, h, tar.Header{Typeflag: tar.TypeReg, Name: "version"})))
		if err != nil {
			f.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		var out bytes.Buffer
		if graphimage.CopyMembers(&out, bytes.NewReader(plain), limit.Limits{}.WithDefaults()) != nil {
			return
		}
		for r := tar.NewReader(&out); ; {
			h, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir || h.Uid|h.Gid != 0 || strings.Contains(h.Name, "..") &&
				!fs.ValidPath(strings.TrimSuffix(h.Name, "/")) || !strings.HasPrefix(h.Name, "var/lib/cincinnati-graph-data/") {
				t.Errorf("%+v", h)
			}
		}
	})
}
