package build

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

// pkg returns the catalog of a small package as YAML.
func pkg(name string) string {
	return fmt.Sprintf(`---
schema: olm.package
name: %[1]s
defaultChannel: stable
---
schema: olm.channel
package: %[1]s
name: stable
entries:
- name: %[1]s.v1.0.0
---
schema: olm.bundle
package: %[1]s
name: %[1]s.v1.0.0
image: registry/%[1]s@sha256:abc
properties:
- type: olm.package
  value:
    packageName: %[1]s
    version: 1.0.0
`, name)
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o640} }

// sampleFS has a package in a directory, one in a file at the root, two in one file, blobs of no package, and an
// ignored file.
func sampleFS() fstest.MapFS {
	return fstest.MapFS{
		"foo/catalog.yaml": file(pkg("foo")),
		"bar.yaml":         file(pkg("bar")),
		"teams/both.yaml": file(
			pkg("one") + pkg("two") + "---\nschema: example.com/none\nname: free\nnumber: 9007199254740993\n"),
		"foo/notes/README.md": file("# not a catalog"),
		".indexignore":        file("README.md\n"),
		"misc/extra.json":     file(`{"schema":"example.com/x","package":"foo","name":"y","big":12345678901234567890}`),
	}
}

// program returns an ELF file without libraries that consists of headers.
func program(t testing.TB, m elf.Machine, more string) []byte {
	t.Helper()
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[19], b[20] = byte(elf.ET_EXEC), byte(m), byte(m>>8), 1
	b[52], b[54], b[58] = 64, 56, 64
	return append(b, more...)
}

// serverBytes is the server program in memory.
func serverBytes(program []byte, p v1.Platform) (Server, error) {
	return serverStream(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(program)), nil },
		int64(len(program)), p)
}

func server(t testing.TB, arch string, m elf.Machine) Server {
	t.Helper()
	s, err := serverBytes(program(t, m, "server for "+arch), v1.Platform{OS: "linux", Architecture: arch})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func catalog(t testing.TB, in CatalogInput, o Options) *Image {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	img, err := Catalog(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	left, err := os.ReadDir(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	own := map[digest.Digest]bool{}
	for _, l := range img.Layers {
		if l.Kind != LayerBase {
			own[l.Digest] = true
		}
	}
	if o.Base == nil && len(left) != len(own) { // a base may have some of the layers too
		t.Errorf("%d files for %d layers: %v", len(left), len(own), left)
	}
	return img
}

// transports are all that there are.
var transports = library.Transports(images.BuiltIn())

func push(t testing.TB, img *Image, dests ...string) []images.Result {
	t.Helper()
	var ds []transport.Destination
	for _, d := range dests {
		parsed, err := transports.Parse(d)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, parsed)
	}
	r, err := images.Copy(t.Context(), img.Store(), img.Top(), ds,
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}, Transports: transports})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree returns the file system of an image in a layout.
func tree(t testing.TB, name string, p v1.Platform, paths ...string) (*images.Image, fs.FS) {
	t.Helper()
	img, err := imagetest.Client(t).Image(t.Context(), name, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	tr, err := img.Extract(t.Context(), paths, images.ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return img, tr
}

func names(t testing.TB, fsys fs.FS) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text formats a catalog in opm's writing order.
func text(t testing.TB, fsys fs.FS) string {
	t.Helper()
	c, err := declcfg.Load(t.Context(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.Write(&b, declcfg.FormatJSON); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestImageHoldsTheCatalog(t *testing.T) {
	in := sampleFS()
	for _, c := range []layers.Compression{layers.Gzip, layers.Zstd} {
		img := catalog(t, CatalogInput{FS: in},
			Options{Compression: c, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}})
		dir := filepath.Join(t.TempDir(), "out")
		r := push(t, img, "oci:"+dir+":v1")
		if r[0].Digest != img.Digest {
			t.Errorf("digest %s, announced %s", r[0].Digest, img.Digest)
		}
		_, tr := tree(t, "oci:"+dir+":v1", v1.Platform{}, "/configs")
		want := []string{
			"configs/bar/bar.yaml", "configs/foo/catalog.yaml", "configs/foo/misc/extra.json",
			"configs/one/teams/both.yaml", "configs/teams/both.yaml", "configs/two/teams/both.yaml",
		}
		if got := names(t, tr); !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		verbatim, err := fs.ReadFile(tr, "configs/foo/catalog.yaml")
		if err != nil || string(verbatim) != pkg("foo") {
			t.Errorf("a file of one package was changed: %v", err)
		}
		sub, err := fs.Sub(tr, "configs")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, sub), text(t, in); got != want {
			t.Errorf("the image's catalog is another:\n%s\nwant\n%s", got, want)
		}
		var packages []string
		for _, l := range img.Layers {
			packages = append(packages, string(l.Kind)+" "+strings.Join(l.Packages, ","))
		}
		if want := []string{"server ", "packages ", "packages bar", "packages foo", "packages one",
			"packages two"}; !slices.Equal(packages, want) {
			t.Errorf("layers: %q", packages)
		}
		if img.Totals.Packages != 4 || img.Totals.Layers != 6 {
			t.Errorf("totals: %+v", img.Totals)
		}
	}
}

func TestImageConfig(t *testing.T) {
	labels := map[string]string{"a": "b"}
	o := Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}, Labels: labels,
		Annotations: map[string]string{"x": "y"}, Created: time.Unix(86400, 5)}
	img := catalog(t, CatalogInput{FS: sampleFS()}, o)
	var c v1.Image
	if err := json.Unmarshal(img.configs[img.Platforms[0].Config], &c); err != nil {
		t.Fatal(err)
	}
	if len(c.History) != len(img.Layers) || len(c.RootFS.DiffIDs) != len(img.Layers) {
		t.Errorf("%d history entries and %d diffIDs for %d layers", len(c.History), len(c.RootFS.DiffIDs),
			len(img.Layers))
	}
	c.RootFS.DiffIDs, c.History = nil, nil
	created := time.Unix(86400, 0).UTC()
	want := v1.Image{Created: &created, Platform: v1.Platform{OS: "linux", Architecture: "amd64"},
		RootFS: v1.RootFS{Type: "layers"}, Config: v1.ImageConfig{
			User: "1001", WorkingDir: "/", Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/configs"},
			Env: []string{defaultPath}, ExposedPorts: map[string]struct{}{"50051/tcp": {}},
			Labels: map[string]string{"a": "b", ConfigsLabel: "/configs"},
		}}
	if got, want := fmt.Sprintf("%+v", c.Config), fmt.Sprintf("%+v", want.Config); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !c.Created.Equal(created) || c.Platform.Architecture != "amd64" {
		t.Errorf("created %v, platform %+v", c.Created, c.Platform)
	}
	var m v1.Manifest
	if err := json.Unmarshal(img.Manifest(), &m); err != nil || m.Annotations["x"] != "y" ||
		m.MediaType != v1.MediaTypeImageManifest {
		t.Errorf("manifest: %+v, %v", m, err)
	}
}

// Two builds give the same digest with different file modes and times, directories and jobs, and with files listed or
// not.
func TestTwoBuildsOneDigest(t *testing.T) {
	var digests []digest.Digest
	for i, mode := range []fs.FileMode{0o644, 0o600, 0o664} {
		t.Setenv("TZ", []string{"UTC", "Asia/Tokyo", "America/Lima"}[i])
		dir := t.TempDir()
		for name, f := range sampleFS() {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700|mode), os.WriteFile(path, f.Data, mode),
				os.Chtimes(path, time.Time{}, time.Unix(int64(i)*1e8, 7))); err != nil {
				t.Fatal(err)
			}
		}
		in := CatalogInput{FS: os.DirFS(dir)}
		if i > 0 {
			c, err := declcfg.Load(t.Context(), in.FS, declcfg.LoadOptions{Skeleton: true})
			if err != nil {
				t.Fatal(err)
			}
			if in.Files, err = FilesOf(c); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(in.Files)
		}
		img := catalog(t, in,
			Options{Compression: layers.Zstd, Jobs: i, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}})
		digests = append(digests, img.Digest)
	}
	if digests[0] != digests[1] || digests[0] != digests[2] {
		t.Errorf("digests: %v", digests)
	}
}

func TestChangingOnePackageChangesOneLayer(t *testing.T) {
	in := sampleFS()
	before := catalog(t, CatalogInput{FS: in}, Options{})
	in["foo/catalog.yaml"] = file(pkg("foo") + "---\nschema: x\npackage: foo\n")
	after := catalog(t, CatalogInput{FS: in}, Options{})
	changed := 0
	for i := range before.Layers {
		if before.Layers[i].Digest != after.Layers[i].Digest {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d layers changed", changed)
	}
}

func TestBlobsInsteadOfADirectory(t *testing.T) {
	c, err := declcfg.Load(t.Context(), sampleFS(), declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	img := catalog(t, CatalogInput{Blobs: c.Blobs()}, Options{})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	_, tr := tree(t, "oci:"+dir, v1.Platform{}, "configs")
	sub, _ := fs.Sub(tr, "configs")
	if text(t, sub) != text(t, sampleFS()) {
		t.Error("the image's catalog is another")
	}
	if got := names(t, sub); !slices.Equal(got,
		[]string{"bar/catalog.json", "catalog.json", "foo/catalog.json", "one/catalog.json", "two/catalog.json"}) {
		t.Errorf("files: %q", got)
	}
	broken := errors.New("row 7 is broken")
	_, err = Catalog(t.Context(),
		CatalogInput{Blobs: func(yield func(declcfg.Blob, error) bool) { yield(nil, broken) }},
		Options{Dir: t.TempDir()})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestCaches(t *testing.T) {
	cache := func(p cataloglayer.Package) (cataloglayer.File, error) {
		var b strings.Builder
		fmt.Fprintf(&b, "%d bundles", len(p.Catalog.Bundles))
		for _, s := range p.Sources {
			fmt.Fprintf(&b, " %s:%d:%x", s.Name, s.Size, s.Digest[:4])
		}
		return cataloglayer.File{Name: "_" + p.Name + ".cache", Content: []byte(b.String())}, nil
	}
	img := catalog(t, CatalogInput{FS: sampleFS()}, Options{caches: cataloglayer.Caches{Native: cache}, Jobs: 2})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	opened, tr := tree(t, "oci:"+dir, v1.Platform{}, "cache", "configs")
	if cmd := opened.Config.Config.Cmd; !slices.Equal(cmd, []string{"serve", "/configs", "--cache-dir=/cache"}) {
		t.Errorf("command: %q", cmd)
	}
	got, err := fs.ReadFile(tr, "cache/_foo.cache")
	if err != nil {
		t.Fatal(err)
	}
	want := "1 bundles"
	for _, name := range []string{"foo/catalog.yaml", "foo/misc/extra.json"} {
		b, err := fs.ReadFile(tr, "configs/"+name)
		if err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf(" %s:%d:%.8s", name, len(b), digest.FromBytes(b).Encoded())
	}
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(img.Layers) != 5 {
		t.Errorf("a cache is not in the layer of its package: %d layers", len(img.Layers))
	}
	failing := errors.New("too large")
	o := Options{Dir: t.TempDir()}
	o.caches.Native = func(cataloglayer.Package) (cataloglayer.File, error) { return cataloglayer.File{}, failing }
	if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, o); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSeveralPlatforms(t *testing.T) {
	for _, f := range []Format{FormatOCI, FormatDocker} {
		o := Options{Format: f,
			Servers: []Server{server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)}}
		img := catalog(t, CatalogInput{FS: sampleFS()}, o)
		if img.MediaType != indexType(f) || len(img.Platforms) != 2 || len(img.Layers) != 7 {
			t.Fatalf("%s: %s with %d platforms and %d layers", f, img.MediaType, len(img.Platforms), len(img.Layers))
		}
		dir := filepath.Join(t.TempDir(), "out")
		if f == FormatDocker {
			push(t, img, "dir:"+dir)
			continue
		}
		push(t, img, "oci:"+dir+":v1")
		for _, arch := range []string{"amd64", "arm64"} {
			opened, err := imagetest.Client(t).Image(t.Context(), "oci:"+dir+":v1",
				v1.Platform{OS: "linux", Architecture: arch})
			if err != nil {
				t.Fatal(err)
			}
			if opened.Config.Architecture != arch {
				t.Errorf("got %s, want %s", opened.Config.Architecture, arch)
			}
			opened.Close()
		}
	}
}

func TestDockerFormat(t *testing.T) {
	img := catalog(t, CatalogInput{FS: sampleFS()}, Options{Format: FormatDocker})
	if img.MediaType != manifest.DockerV2Schema2MediaType {
		t.Errorf("media type %s", img.MediaType)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if r := push(t, img, "dir:"+dir); r[0].Digest != img.Digest {
		t.Errorf("digest %s, announced %s", r[0].Digest, img.Digest)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := manifest.Schema2FromManifest(text); err != nil ||
		m.LayersDescriptors[0].MediaType != manifest.DockerV2Schema2LayerMediaType {
		t.Errorf("manifest: %v", err)
	}
}

func TestDestinationsThatCannotHoldTheImage(t *testing.T) {
	docker := catalog(t, CatalogInput{FS: sampleFS()}, Options{Format: FormatDocker})
	two := catalog(t, CatalogInput{FS: sampleFS()},
		Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)}})
	dir := t.TempDir()
	for dest, c := range map[string]struct {
		img  *Image
		text string
	}{
		"oci:" + dir + "/a:v1":         {docker, "OCI images only"},
		"oci-archive:" + dir + "/b:v1": {docker, "OCI images only"},
		"docker-archive:" + dir + "/c": {two, "one platform"},
	} {
		d, err := transports.Parse(dest)
		if err != nil {
			t.Fatal(err)
		}
		_, err = images.Copy(t.Context(), c.img.Store(), c.img.Top(), []transport.Destination{d},
			images.CopyOptions{Transports: transports})
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", dest, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRefusedOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"gzip only":           {Format: FormatDocker, Compression: layers.Zstd},
		"no annotations":      {Format: FormatDocker, Annotations: map[string]string{"a": "b"}},
		"squashfs":            {Format: "squashfs"},
		"no directory":        {Dir: "-"},
		"allow more layers":   {MaxLayers: 1, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}},
		"lzma":                {Compression: "lzma"},
		"directory or blobs":  {Created: time.Unix(1, 0)},
		"invalid name of a p": {Created: time.Unix(2, 0)},
	} {
		in := CatalogInput{FS: sampleFS()}
		if o.Dir = t.TempDir(); want == "no directory" {
			o.Dir = ""
		}
		switch want {
		case "directory or blobs":
			in.FS = nil
		case "invalid name of a p":
			in.FS = fstest.MapFS{"x.yaml": file(strings.ReplaceAll(pkg("foo"), "foo", "../../etc"))}
		}
		if _, err := Catalog(t.Context(), in, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestServerMustRun(t *testing.T) {
	linux := func(arch string) v1.Platform { return v1.Platform{OS: "linux", Architecture: arch} }
	dynamic := program(t, elf.EM_X86_64, "")
	dynamic[32], dynamic[56] = 64, 1 // one program header, right behind
	dynamic = append(dynamic, append([]byte{byte(elf.PT_INTERP)}, make([]byte, 55)...)...)
	cases := map[string]struct {
		program []byte
		p       v1.Platform
		text    string
	}{
		"empty":      {nil, linux("amd64"), "empty"},
		"script":     {[]byte("#!/bin/sh\nexec opm \"$@\"\n"), linux("amd64"), "not an ELF"},
		"wrong arch": {program(t, elf.EM_AARCH64, ""), linux("amd64"), "EM_AARCH64"},
		"dynamic":    {dynamic, linux("amd64"), "dynamically"},
		"windows": {program(t, elf.EM_X86_64, ""), v1.Platform{OS: "windows", Architecture: "amd64"},
			"windows/amd64"},
		"odd arch": {program(t, elf.EM_X86_64, ""), linux("z80"), "z80"},
	}
	for name, c := range cases {
		path := filepath.Join(t.TempDir(), "opm")
		if err := os.WriteFile(path, c.program, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err1 := serverBytes(c.program, c.p)
		_, err2 := ServerFile(path, c.p)
		for _, err := range []error{err1, err2} {
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: got %v, want %q", name, err, c.text)
			}
		}
	}
	if _, err := ServerFile(filepath.Join(t.TempDir(), "missing"), linux("amd64")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestServerThatChangesIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opm")
	if err := os.WriteFile(path, program(t, elf.EM_X86_64, "v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := ServerFile(path, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, program(t, elf.EM_X86_64, "v2"), 0o755),
		os.Chtimes(path, time.Time{}, time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()},
		Options{Dir: t.TempDir(), Servers: []Server{s}}); !errors.Is(err, layers.ErrChanged) {
		t.Errorf("got %v", err)
	}
}

func TestMaxLayers(t *testing.T) {
	in := fstest.MapFS{}
	for i := range 150 {
		name := fmt.Sprintf("op-%03d", i)
		in[name+"/catalog.yaml"] = file(pkg(name) + strings.Repeat("# padding\n", i*10))
	}
	o := Options{MaxLayers: 20, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}}
	before := catalog(t, CatalogInput{FS: in}, o)
	if len(before.Layers) > 20 || before.Totals.Packages != 150 {
		t.Errorf("%d layers with %d packages", len(before.Layers), before.Totals.Packages)
	}
	// An additional small package changes the layer that it shares and no other.
	in["op-new/catalog.yaml"] = file(pkg("op-new"))
	after := catalog(t, CatalogInput{FS: in}, o)
	old := map[digest.Digest]bool{}
	for _, l := range before.Layers {
		old[l.Digest] = true
	}
	added := 0
	for _, l := range after.Layers {
		if !old[l.Digest] {
			added++
		}
	}
	if added != 1 {
		t.Errorf("%d new layers", added)
	}
	if img := catalog(t, CatalogInput{FS: in}, Options{}); len(img.Layers) > 100 {
		t.Errorf("%d layers by default", len(img.Layers))
	}
}

func TestEmptyCatalog(t *testing.T) {
	img := catalog(t, CatalogInput{FS: fstest.MapFS{}}, Options{})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	_, tr := tree(t, "oci:"+dir, v1.Platform{}, "configs")
	if info, err := fs.Stat(tr, "configs"); err != nil || !info.IsDir() {
		t.Errorf("/configs: %v", err)
	}
}

func TestBase(t *testing.T) {
	cache := func(p cataloglayer.Package) (cataloglayer.File, error) {
		return cataloglayer.File{Name: p.Name + ".cache", Content: []byte(p.Name)}, nil
	}
	// The base is a catalog image with a catalog and a cache.
	base := catalog(t, CatalogInput{FS: fstest.MapFS{"old/catalog.yaml": file(pkg("old"))}},
		Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}, caches: cataloglayer.Caches{Native: cache},
			Labels: map[string]string{"base": "1", "both": "base"}})
	for _, from := range []Format{FormatOCI, FormatDocker} {
		baseDir := filepath.Join(t.TempDir(), "base")
		name := "oci:" + baseDir + ":v1"
		if from == FormatDocker {
			base = catalog(t, CatalogInput{FS: fstest.MapFS{"old/catalog.yaml": file(pkg("old"))}},
				Options{Format: from, Servers: []Server{server(t, "amd64", elf.EM_X86_64)},
					Labels: map[string]string{"base": "1", "both": "base"}})
			name = "dir:" + baseDir
		}
		push(t, base, name)
		ref, err := NamedBase(imagetest.Client(t), name)
		if err != nil {
			t.Fatal(err)
		}
		img := catalog(t, CatalogInput{FS: sampleFS()},
			Options{Base: ref, caches: cataloglayer.Caches{Native: cache}, Labels: map[string]string{"both": "mine"}})
		dir := filepath.Join(t.TempDir(), "out")
		push(t, img, "oci:"+dir)
		opened, tr := tree(t, "oci:"+dir, v1.Platform{}, "configs", "cache")
		sub, _ := fs.Sub(tr, "configs")
		caches, _ := fs.Sub(tr, "cache")
		if got := names(t, caches); slices.Contains(got, "old.cache") || !slices.Contains(got, "foo.cache") {
			t.Errorf("%s base: caches: %q", from, got)
		}
		if text(t, sub) != text(t, sampleFS()) {
			t.Errorf("%s base: the image's catalog is another: %q", from, names(t, sub))
		}
		want := map[string]string{"base": "1", "both": "mine", ConfigsLabel: "/configs"}
		if !maps.Equal(opened.Config.Config.Labels, want) {
			t.Errorf("labels: %v", opened.Config.Config.Labels)
		}
		for i, l := range opened.Layers {
			if l.MediaType != v1.MediaTypeImageLayerGzip {
				t.Errorf("layer %d: %s", i, l.MediaType)
			}
			if i < 2 && l.Digest != base.Layers[i].Digest {
				t.Errorf("layer %d is not the base's", i)
			}
		}
		if n := len(opened.Config.History); n != len(opened.Layers) {
			t.Errorf("%d history entries for %d layers", n, len(opened.Layers))
		}
	}
	ref, err := NamedBase(imagetest.Client(t), "oci:"+t.TempDir()+":v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Catalog(t.Context(), CatalogInput{FS: sampleFS()}, Options{Dir: t.TempDir(), Base: ref}); err == nil ||
		!strings.Contains(err.Error(), "base image") {
		t.Errorf("missing base: %v", err)
	}
}

func TestPlacesNeverCollide(t *testing.T) {
	in := fstest.MapFS{
		"foo/x":       file(pkg("foo")),
		"x":           file("schema: s\npackage: foo\nname: root\n"),
		"foo/foo/x":   file("schema: s\npackage: foo\nname: deep\n"),
		"foo/x.d/y":   file("schema: s\nname: nobody\n"),
		"y":           file("schema: s\npackage: foo\nname: top\n"),
		"foo/y/z":     file("schema: s\npackage: foo\nname: yz\n"),
		"bar/foo/x":   file("schema: s\npackage: foo\nname: other\n"),
		"foo/bar/foo": file("schema: s\npackage: foo\nname: file\n"),
	}
	img := catalog(t, CatalogInput{FS: in}, Options{})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	_, tr := tree(t, "oci:"+dir, v1.Platform{}, "configs")
	if got := names(t, tr); len(got) != len(in) {
		t.Errorf("%d files of %d: %q", len(got), len(in), got)
	}
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := declcfg.Load(t.Context(), sampleFS(), declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	blobs := func(yield func(declcfg.Blob, error) bool) {
		for b, err := range c.Blobs() {
			cancel()
			if !yield(b, err) {
				return
			}
		}
	}
	dir := t.TempDir()
	if _, err := Catalog(ctx, CatalogInput{Blobs: blobs}, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
