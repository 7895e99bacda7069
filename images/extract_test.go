package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/imagefs"
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

func TestExtractSeesWhatTheImageShows(t *testing.T) {
	layer := func(es ...entry) rawLayer { return gzipLayer(t, tarOf(t, es...)) }
	file := func(name string) entry { return entry{name: name, body: name} }
	dir := func(name string) entry { return entry{name: name, kind: tar.TypeDir} }
	cases := map[string]struct {
		layers []rawLayer
		want   string
	}{
		"one layer": {[]rawLayer{layer(dir("configs/"), file("configs/a"), file("bin/opm"))},
			"configs/a"},
		"upper file wins": {[]rawLayer{layer(entry{name: "configs/a", body: "old"}),
			layer(file("configs/a"))}, "configs/a"},
		"layers add up": {[]rawLayer{layer(file("configs/a")), layer(file("configs/b/c"))},
			"configs/a configs/b/c"},
		"whiteout": {[]rawLayer{layer(file("configs/a"), file("configs/b")),
			layer(file("configs/.wh.a"))}, "configs/b"},
		"whiteout of a parent": {[]rawLayer{layer(file("configs/a")),
			layer(file(".wh.configs"), file("configs/b"))}, "configs/b"},
		"whiteout in its own layer": {[]rawLayer{layer(file("configs/a"), file("configs/.wh.a"))}, "configs/a"},
		"opaque": {[]rawLayer{layer(file("configs/a"), file("configs/x/b")),
			layer(dir("configs/x"), file("configs/x/.wh..wh..opq"), file("configs/x/c"))}, "configs/a configs/x/c"},
		"opaque root": {[]rawLayer{layer(file("configs/a")),
			layer(file(".wh..wh..opq"), file("configs/b"))}, "configs/b"},
		"removed, made again": {[]rawLayer{layer(file("configs/a")), layer(file("configs/.wh.a")),
			layer(file("configs/a"))}, "configs/a"},
		"removed stays removed": {[]rawLayer{layer(file("configs/a")), layer(file("configs/.wh.a")),
			layer(file("configs/b"))}, "configs/b"},
		"file over directory": {[]rawLayer{layer(file("configs/a/b")), layer(file("configs/a"))},
			"configs/a"},
		"directory over file": {[]rawLayer{layer(entry{name: "configs/a", body: "x"}),
			layer(dir("configs/a"), file("configs/a/b"))}, "configs/a/b"},
		"links elsewhere do not matter": {[]rawLayer{layer(entry{name: "lib", link: "usr/lib", kind: tar.TypeSymlink},
			entry{name: "dev/null", kind: tar.TypeChar}, file("configs/a"))}, "configs/a"},
		"dot names":                {[]rawLayer{layer(dir("./"), file("./configs/./a"))}, "configs/a"},
		"empty layer of a builder": {[]rawLayer{layer(), layer(file("configs/a"))}, "configs/a"},
		"zstd and plain": {[]rawLayer{zstdLayer(t, tarOf(t, file("configs/a"))),
			plainLayer(tarOf(t, file("configs/b")))}, "configs/a configs/b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, memory := range []int64{1 << 20, 1} { // both in memory and in a file
				tree, err := extract(t, newFixture(t, c.layers...), limit.Limits{Memory: memory}, "/configs")
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]string{}
				names := strings.Fields(c.want)
				for _, n := range names {
					want[n] = n
				}
				if name == "dot names" {
					want["configs/a"] = "./configs/./a"
				}
				if got := content(t, tree); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got %v, want %v", got, want)
				}
				if err := fstest.TestFS(tree, names...); err != nil {
					t.Error(err)
				}
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What a reader on disk would stumble over is refused, with its class and a text that names the rule.
func TestHostileLayersAreRefused(t *testing.T) {
	f := func(name string) entry { return entry{name: name, body: "x"} }
	sym := func(name, to string) entry { return entry{name: name, link: to, kind: tar.TypeSymlink} }
	cases := map[string]struct {
		layers []rawLayer
		class  error
		text   string
	}{
		"dotdot-file": {[]rawLayer{plainLayer(tarOf(t, f("../../canary/w")))}, fault.ErrInvalid,
			"path leaves the image root"},
		"abs-file": {[]rawLayer{plainLayer(tarOf(t, f("/canary/w")))}, fault.ErrInvalid, "absolute path"},
		"symlink-parent": {[]rawLayer{plainLayer(tarOf(t, sym("a", "/canary"), f("a/w")))}, fault.ErrInvalid,
			`symlink "a"`},
		"symlink-2-layers": {[]rawLayer{plainLayer(tarOf(t, sym("a", "/canary"))), plainLayer(tarOf(t, f("a/w")))},
			fault.ErrInvalid, `symlink "a"`},
		"hardlink-absolute": {[]rawLayer{plainLayer(
			tarOf(t, entry{name: "l", link: "/canary/secret", kind: tar.TypeLink}))}, fault.ErrInvalid, "hard link"},
		"root-as-symlink": {[]rawLayer{plainLayer(tarOf(t, sym("./.", "/canary")))}, fault.ErrInvalid,
			"archive root"},
		"whiteout-empty":  {[]rawLayer{plainLayer(tarOf(t, f(".wh.")))}, fault.ErrInvalid, "invalid whiteout"},
		"whiteout-dot":    {[]rawLayer{plainLayer(tarOf(t, f("a/.wh..")))}, fault.ErrInvalid, "invalid whiteout"},
		"whiteout-dotdot": {[]rawLayer{plainLayer(tarOf(t, f(".wh...")))}, fault.ErrInvalid, "invalid whiteout"},
		"char-device": {[]rawLayer{plainLayer(tarOf(t, entry{name: "d", kind: tar.TypeChar}))}, fault.ErrInvalid,
			"device"},
		"fifo-entry": {[]rawLayer{plainLayer(tarOf(t, entry{name: "d", kind: tar.TypeFifo}))}, fault.ErrInvalid,
			"FIFO"},
		"duplicate-entry": {[]rawLayer{plainLayer(tarOf(t, f("m/a"), f("m/a")))}, fault.ErrInvalid, "appears twice"},
		"duplicate-cleaned": {[]rawLayer{plainLayer(tarOf(t, f("m/a"), f("m/./a")))}, fault.ErrInvalid,
			"appears twice"},
		"type-change": {[]rawLayer{plainLayer(tarOf(t, f("m"), entry{name: "m", kind: tar.TypeDir}))},
			fault.ErrInvalid, "appears twice"},
		"child-of-file": {[]rawLayer{plainLayer(tarOf(t, f("m"), f("m/x")))}, fault.ErrInvalid, "below the file"},
		"name-300":      {[]rawLayer{plainLayer(tarOf(t, f(strings.Repeat("n", 300))))}, fault.ErrLimit, "255"},
		"path-5000": {[]rawLayer{plainLayer(tarOf(t, f(strings.Repeat("d/", 2500)+"x")))}, fault.ErrLimit,
			"path longer than"},
		"deep": {[]rawLayer{plainLayer(tarOf(t, f(strings.Repeat("d/", 40)+"x")))}, fault.ErrLimit,
			"directories deep"},
		"ansi-newline-name": {[]rawLayer{plainLayer(tarOf(t, f("a\n\x1b[31m")))}, fault.ErrInvalid, `\x1b`},
		"non-utf8-name":     {[]rawLayer{plainLayer(tarOf(t, f("bad\xff\xfe")))}, fault.ErrInvalid, "not UTF-8"},
		"backslash-name":    {[]rawLayer{plainLayer(tarOf(t, f(`..\..\w`)))}, fault.ErrInvalid, "backslash"},
		"unknown-type-Q": {[]rawLayer{plainLayer(tarOf(t, entry{name: "q", kind: 'Q'}))}, fault.ErrInvalid,
			"entry type"},
		"big file": {[]rawLayer{plainLayer(tarOf(t, entry{name: "b", body: strings.Repeat("x", 2001)}))},
			fault.ErrLimit, "limit 2000"},
		"many entries": {[]rawLayer{plainLayer(tarOf(t, f("1"), f("2"), f("3"), f("4"), f("5"), f("6")))},
			fault.ErrLimit, "more than 5 entries"},
		"empty layer": {[]rawLayer{plainLayer(nil)}, fault.ErrInvalid, "missing end of archive"},
		"xz-layer": {[]rawLayer{{[]byte("\xfd7zXZ\x00xx"), v1.MediaTypeImageLayer, digest.FromString("")}},
			fault.ErrInvalid, "unsupported compression"},
		"bzip2-layer": {[]rawLayer{{[]byte("BZh91AY"), v1.MediaTypeImageLayerGzip, digest.FromString("")}},
			fault.ErrInvalid, "unsupported compression"},
		"unknown-layer-type": {[]rawLayer{{[]byte("x"), "application/x-helm-chart", digest.FromString("")}},
			fault.ErrInvalid, "unknown media type"},
	}
	gz := gzipLayer(t, tarOf(t, f("a")))
	odd := func(content []byte) []rawLayer { return []rawLayer{{content, v1.MediaTypeImageLayerGzip, gz.diffID}} }
	add := func(name string, layers []rawLayer, class error, text string) {
		cases[name] = struct {
			layers []rawLayer
			class  error
			text   string
		}{layers, class, text}
	}
	crc := bytes.Clone(gz.content)
	crc[len(crc)-6] ^= 1
	wrongID := gz
	wrongID.diffID = digest.FromString("other")
	isGzip := gz
	isGzip.mediaType = v1.MediaTypeImageLayer
	plain := tarOf(t, f("a"))
	add("truncated-gzip", odd(gz.content[:len(gz.content)-10]), fault.ErrIntegrity, "unexpected end")
	add("gzip-crc-bad", odd(crc), fault.ErrIntegrity, "damaged")
	add("trailing-after-gzip", odd(append(bytes.Clone(gz.content), bytes.Repeat([]byte{0xaa}, 4096)...)),
		fault.ErrIntegrity, "damaged")
	add("type-says-tar-is-gzip", []rawLayer{isGzip}, fault.ErrInvalid, "does not match media type")
	add("diffids-wrong", []rawLayer{wrongID}, fault.ErrIntegrity, "digest mismatch")
	add("tar-no-eof", []rawLayer{plainLayer(plain[:1024])}, fault.ErrInvalid, "missing end of archive")
	add("tar-concat", []rawLayer{plainLayer(append(bytes.Clone(plain), plain...))}, fault.ErrInvalid,
		"data after end of archive")
	add("tar-truncated-file",
		[]rawLayer{plainLayer(tarOf(t, entry{name: "b", body: strings.Repeat("x", 2000)})[:1000])}, fault.ErrIntegrity,
		"unexpected end")
	add("sparse-1TiB", []rawLayer{plainLayer(sparse(t, 1<<40))}, fault.ErrLimit, "sparse")
	add("sparse-4EiB", []rawLayer{plainLayer(sparse(t, 1<<62))}, fault.ErrLimit, "sparse")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := extract(t, newFixture(t, c.layers...), limit.Limits{File: 2000, Entries: 5}, ".")
			if !errors.Is(err, c.class) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %v and %q", err, c.class, c.text)
			}
			if strings.ContainsAny(fmt.Sprint(err), "\x1b\n") {
				t.Errorf("raw control characters in %q", err)
			}
		})
	}
}

// sparse is an archive with a file that claims a length which is not stored. The writer of archives makes no such
// records, but what is in a PAX header is not part of a checksum.
func sparse(t testing.TB, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	records := map[string]string{"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": "s",
		"XNU.sparse.realsize": fmt.Sprint(size)}
	body := "1\n" + fmt.Sprint(size) + "\n0\n"
	body += strings.Repeat("\x00", 512-len(body))
	err := w.WriteHeader(&tar.Header{Name: "s", Mode: 0o644, Size: int64(len(body)), Format: tar.FormatPAX,
		Typeflag: tar.TypeReg, PAXRecords: records})
	if err == nil {
		_, err = w.Write([]byte(body))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("XNU.sparse"), []byte("GNU.sparse"))
}

func TestBombsAreRefusedInSmallMemory(t *testing.T) {
	zeros := make([]byte, 1<<20)
	var gz bytes.Buffer
	w, _ := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	tw := tar.NewWriter(w)
	if err := tw.WriteHeader(&tar.Header{Name: "configs/bomb", Size: 1 << 30, Mode: 0o644,
		Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err := tw.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	var zs bytes.Buffer
	zw, _ := zstd.NewWriter(&zs, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	for range 80 {
		if _, err := zw.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	zw.Close()
	// Frames of 2 GiB (RFC 8878, "Zstandard Frames"): by their window, and as a single segment.
	block := []byte{0xfb, 0xff, 0x0f, 0} // repeats a byte, and is the last
	wide := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3}, block...)
	single := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x80}, block...)
	cases := map[string]struct {
		layer rawLayer
		text  string
	}{
		"zstd-window-2GiB":  {rawLayer{wide, v1.MediaTypeImageLayerZstd, digest.FromString("")}, "window"},
		"zstd-segment-2GiB": {rawLayer{single, v1.MediaTypeImageLayerZstd, digest.FromString("")}, "window"},
		"gzip-bomb":         {rawLayer{gz.Bytes(), v1.MediaTypeImageLayerGzip, digest.FromString("")}, "uncompressed"},
		"zstd-window":       {rawLayer{zs.Bytes(), v1.MediaTypeImageLayerZstd, digest.FromString("")}, "window"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := extract(t, newFixture(t, c.layer), limit.Limits{File: 4 << 30}, "configs")
			runtime.ReadMemStats(&after)
			if !errors.Is(err, fault.ErrLimit) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
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

func FuzzExtract(f *testing.F) {
	f.Add(tarOf(f, entry{name: "configs/a", body: "x"}, entry{name: "configs/.wh.b"}))
	f.Add(tarOf(f, entry{name: "a", link: "/etc", kind: tar.TypeSymlink}, entry{name: "a/b", body: "x"}))
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := extract(t, newFixture(t, plainLayer(text)), limit.Limits{}, ".")
		if err != nil {
			return
		}
		defer tree.Close()
		for name := range content(t, tree) {
			if !fs.ValidPath(name) {
				t.Errorf("name %q", name)
			}
		}
	})
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
