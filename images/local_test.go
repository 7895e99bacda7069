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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Every local transport gives the same image, through the client and without one.
func TestLocalTransports(t *testing.T) {
	f := simple(t, "hello")
	dir := t.TempDir()
	for _, to := range []string{"oci:layout:v1", "oci-archive:image.oci:v1",
		"docker-archive:image.docker:example.test/a/b:v1", "docker-archive:image.docker.untagged", "dir:directory"} {
		transport, rest, _ := strings.Cut(to, ":")
		to = transport + ":" + filepath.Join(dir, rest)
		mustCopy(t, f, to)
		from := []string{to}
		if path, name, ok := strings.Cut(to[len(transport)+1:], ":"); ok && name != "" {
			from = append(from, transport+":"+path, transport+":"+path+":@0")
		}
		for _, name := range from {
			t.Run(strings.ReplaceAll(name, dir, ""), func(t *testing.T) {
				c := quick(t, ClientOptions{})
				img, err := c.Image(t.Context(), name, v1.Platform{})
				if err != nil {
					t.Fatal(err)
				}
				defer img.Close()
				if img.Top != img.Digest || img.Name != name || img.Reference() != name ||
					transport != "docker-archive" && img.Digest != digest.FromBytes(f.manifest) {
					t.Errorf("got %+v", img)
				}
				again, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), name, v1.Platform{})
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				if again.Digest != img.Digest {
					t.Errorf("%s and %s", again.Digest, img.Digest)
				}
				tree, err := img.Extract(t.Context(), []string{"configs"}, ExtractOptions{Temp: c.o.Temp})
				if err != nil {
					t.Fatal(err)
				}
				defer tree.Close()
				if got := content(t, tree); len(got) != 1 || got["configs/a/catalog.yaml"] != "hello" {
					t.Errorf("got %v", got)
				}
			})
		}
	}
	for _, name := range []string{"oci:layout:v2", "oci:layout:@1", "oci-archive:image.oci:v2",
		"docker-archive:image.docker:example.test/a/b:v2", "docker-archive:image.docker:@7", "dir:layout",
		"oci:directory", "oci-archive:image.docker", "docker-archive:image.oci", "oci:nowhere", "dir:image.oci"} {
		transport, rest, _ := strings.Cut(name, ":")
		if _, err := read(t.Context(), quick(t, ClientOptions{}), transport+":"+filepath.Join(dir, rest)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// member is an entry of an archive that is made by hand.
type member struct {
	name, body, link string
	kind             byte
}

func archiveOf(t testing.TB, path string, members ...member) string {
	t.Helper()
	var entries []entry
	for _, m := range members {
		entries = append(entries, entry(m2e(m)))
	}
	if err := os.WriteFile(path, tarOf(t, entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func m2e(m member) entry { return entry(m) }

// layoutMembers are the members of an archive with a layout that has the fixture.
func layoutMembers(t testing.TB, f *fixture) []member {
	t.Helper()
	d := v1.Descriptor{MediaType: f.kind, Digest: digest.FromBytes(f.manifest), Size: int64(len(f.manifest))}
	index := v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{d}}
	index.SchemaVersion = 2
	out := []member{
		{name: "oci-layout", body: `{"imageLayoutVersion":"1.0.0"}`},
		{name: "index.json", body: string(mustJSON(t, index))},
		{name: "blobs/sha256/" + d.Digest.Encoded(), body: string(f.manifest)},
	}
	for d, b := range f.blobs {
		out = append(out, member{name: "blobs/sha256/" + d.Encoded(), body: string(b)})
	}
	return out
}

// dockerMembers are the members of an archive as "docker save" makes it.
func dockerMembers(t testing.TB, f *fixture, layers ...string) []member {
	t.Helper()
	var m v1.Manifest
	if err := json.Unmarshal(f.manifest, &m); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := range m.Layers {
		names = append(names, fmt.Sprintf("%d/layer.tar", i))
	}
	list := mustJSON(t,
		[]map[string]any{{"Config": "config.json", "RepoTags": []string{"example.test/a:v1"}, "Layers": names}})
	out := []member{{name: "manifest.json", body: string(list)},
		{name: "config.json", body: string(f.blobs[m.Config.Digest])}}
	for i, l := range layers {
		out = append(out, member{name: names[i], body: l})
	}
	return out
}

func TestArchivesOfOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	one, two := tarOf(t, entry{name: "configs/a/catalog.yaml", body: "x"}), tarOf(t, entry{name: "other"})
	zipped := gzipLayer(t, one)
	f := newFixture(t, plainLayer(one), plainLayer(two), plainLayer(one))
	members := dockerMembers(t, f, string(one), string(two))
	compressed := func(path string) {
		plain, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err = w.Write(plain)
		if err = errors.Join(err, w.Close(), os.WriteFile(path+".gz", b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]string{
		"link to a layer": "docker-archive:" + archiveOf(t, filepath.Join(dir, "1"),
			append(slices.Clone(members),
				member{name: "2/layer.tar", link: "../0/layer.tar", kind: tar.TypeSymlink})...),
		"hard link to a layer": "docker-archive:" + archiveOf(t, filepath.Join(dir, "2"),
			append(slices.Clone(members), member{name: "2/layer.tar", link: "0/layer.tar", kind: tar.TypeLink})...),
		"compressed layer": "docker-archive:" + archiveOf(t, filepath.Join(dir, "3"),
			append(slices.Clone(members), member{name: "2/layer.tar", body: string(zipped.content)})...),
		"names with dots": "oci-archive:" + archiveOf(t, filepath.Join(dir, "4"), dotted(layoutMembers(t, f))...),
	}
	compressed(filepath.Join(dir, "1"))
	compressed(filepath.Join(dir, "4"))
	cases["compressed as a whole"] = "docker-archive:" + filepath.Join(dir, "1.gz") + ":example.test/a:v1"
	cases["layout compressed as a whole"] = "oci-archive:" + filepath.Join(dir, "4.gz")
	for name, from := range cases {
		if got, err := read(t.Context(), quick(t, ClientOptions{}), from); err != nil || got != "x" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func dotted(in []member) (out []member) {
	out = append(out, member{name: "./", kind: tar.TypeDir}, member{name: "./blobs/", kind: tar.TypeDir})
	for _, m := range in {
		m.name = "./" + m.name
		out = append(out, m)
	}
	return out
}

func TestHostileArchivesAreRefused(t *testing.T) {
	dir := t.TempDir()
	f := simple(t, "x")
	good := layoutMembers(t, f)
	with := func(name string, change func(*member)) []member {
		out := slices.Clone(good)
		for i := range out {
			if strings.HasSuffix(out[i].name, name) {
				change(&out[i])
			}
		}
		return out
	}
	manifest := digest.FromBytes(f.manifest).Encoded()
	plain := tarOf(t, entry{name: "configs/a/catalog.yaml", body: "x"})
	df := newFixture(t, plainLayer(plain))
	docker := func(text string, more ...member) []member {
		return append(append([]member{{name: "manifest.json", body: text}}, dockerMembers(t, df, string(plain))[1:]...),
			more...)
	}
	cases := map[string]struct {
		transport string
		members   []member
		class     error
		text      string
	}{
		"name that leaves": {"oci-archive", append(slices.Clone(good), member{name: "../../canary", body: "x"}),
			fault.ErrInvalid, "path leaves"},
		"absolute name": {"oci-archive", append(slices.Clone(good), member{name: "/canary", body: "x"}),
			fault.ErrInvalid, "absolute path"},
		"device": {"oci-archive", append(slices.Clone(good), member{name: "d", kind: tar.TypeChar}),
			fault.ErrInvalid, "neither a file nor a directory"},
		"FIFO": {"oci-archive",
			with("index.json", func(m *member) { m.kind, m.body = tar.TypeFifo, "" }), fault.ErrInvalid,
			"neither a file nor a directory"},
		"twice": {"oci-archive", append(slices.Clone(good), good[1]), fault.ErrInvalid,
			"appears twice"},
		"twice, with a dot": {"oci-archive",
			append(slices.Clone(good), member{name: "./index.json", body: good[1].body}), fault.ErrInvalid,
			"appears twice"},
		"control characters": {"oci-archive", append(slices.Clone(good), member{name: "a\x1b[31m", body: "x"}),
			fault.ErrInvalid, `\x1b`},
		"no index": {"oci-archive", good[:1], fs.ErrNotExist, "index.json"},
		"index out of it": {"oci-archive",
			with("index.json", func(m *member) { m.kind, m.body, m.link = tar.TypeSymlink, "", "/etc/passwd" }),
			fs.ErrNotExist, "index.json"},
		"manifest changed": {"oci-archive",
			with(manifest, func(m *member) { m.body = strings.Replace(m.body, "{", " ", 1) }), fault.ErrIntegrity,
			"digest mismatch"},
		"manifest cut": {"oci-archive", with(manifest, func(m *member) { m.body = m.body[1:] }),
			fault.ErrIntegrity, "mismatch"},
		"index of 5 MiB": {"oci-archive",
			with("index.json", func(m *member) { m.body += strings.Repeat(" ", 5<<20) }), fault.ErrLimit,
			"limit 4194304"},
		"many entries": {"oci-archive", append(slices.Clone(good), manyMembers(60)...), fault.ErrLimit,
			string(limit.Entries)},
		"list is no list": {"docker-archive", docker(`{}`), fault.ErrInvalid, "manifest.json"},
		"no image":        {"docker-archive", docker(`[]`), fault.ErrInvalid, "no single image"},
		"two images": {"docker-archive",
			docker(`[{"Config":"config.json","RepoTags":["example.test/b:v1"]},{}]`), fault.ErrInvalid,
			"example.test/b:v1"},
		"no config": {"docker-archive", docker(`[{"Config":"x.json","Layers":["0/layer.tar"]}]`),
			fs.ErrNotExist, "x.json"},
		"config out of it": {"docker-archive",
			docker(`[{"Config":"../../etc/passwd","Layers":["0/layer.tar"]}]`), fs.ErrNotExist, "passwd"},
		"layer too many": {"docker-archive",
			docker(`[{"Config":"config.json","Layers":["0/layer.tar","0/layer.tar"]}]`), fault.ErrIntegrity,
			"diff_ids"},
		"layer is another": {"docker-archive", docker(`[{"Config":"config.json","Layers":["config.json"]}]`),
			fault.ErrIntegrity, "digest mismatch"},
		"layer is a loop": {"docker-archive",
			docker(`[{"Config":"config.json","Layers":["l"]}]`, member{name: "l", link: "l", kind: tar.TypeSymlink}),
			fault.ErrInvalid, "link to a link"},
		"layer links out of it": {"docker-archive",
			docker(`[{"Config":"config.json","Layers":["l"]}]`,
				member{name: "l", link: "../../../etc/passwd", kind: tar.TypeSymlink}), fs.ErrNotExist, "l"},
		"thousands of layers": {"docker-archive",
			docker(`[{"Config":"config.json","Layers":["0/layer.tar"` + strings.Repeat(`,"0/layer.tar"`, 5000) + `]}]`),
			fault.ErrLimit, "layers"},
		"thousands of images": {"docker-archive", docker(`[{}` + strings.Repeat(`,{}`, 5000) + `]`), fault.ErrLimit,
			"images"},
		"manifest.json of 5 MiB": {"docker-archive", docker(`[` + strings.Repeat(" ", 5<<20) + `]`), fault.ErrLimit,
			"limit 4194304"},
		"configuration is no map": {"docker-archive", docker(`[{"Config":"manifest.json","Layers":[]}]`),
			fault.ErrInvalid, "configuration"},
	}
	n := 0
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n++
			path := archiveOf(t, filepath.Join(dir, fmt.Sprint(n)), c.members...)
			_, err := read(t.Context(), quick(t, ClientOptions{Limits: limit.Limits{Entries: 50}}),
				c.transport+":"+path)
			if !errors.Is(err, c.class) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %v and %q", err, c.class, c.text)
			}
			if strings.ContainsAny(fmt.Sprint(err), "\x1b") {
				t.Errorf("raw control characters in %q", err)
			}
		})
	}
}

func manyMembers(n int) (out []member) {
	for i := range n {
		out = append(out, member{name: fmt.Sprint(i)})
	}
	return out
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

// What is no archive at all is refused at once: nothing is waited for, and nothing large is unpacked.
func TestWhatIsNoArchive(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	good := archiveOf(t, at("good"), layoutMembers(t, simple(t, "x"))...)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	w, _ := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	for range 300 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(w.Close(), syscall.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("dir"), 0o700), os.WriteFile(at("empty"), nil, 0o600),
		os.WriteFile(at("cut"), text[:len(text)/2], 0o600),
		os.WriteFile(at("text"), bytes.Repeat([]byte("text"), 1000), 0o600),
		os.WriteFile(at("xz"), []byte("\xfd7zXZ\x00 and so on"), 0o600), os.WriteFile(at("bomb"), bomb.Bytes(), 0o600),
		os.WriteFile(at("cut.gz"), bomb.Bytes()[:1000], 0o600), os.WriteFile(at("sparse"), sparse(t, 1<<40), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"fifo": "is a pipe", "dir": "is a directory, expected a file", "empty": "", "cut": "",
		"text": "archive", "xz": "compressed with xz: decompress it",
		"bomb": string(limit.Ratio), "cut.gz": "unexpected end", "sparse": "sparse", "nowhere": "no such file",
	} {
		for _, kind := range []transport.Name{transport.OCIArchive, transport.DockerArchive} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := read(t.Context(), quick(t, ClientOptions{}), string(kind)+":"+at(name))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s, %s: got %v", kind, name, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%s, %s: took %d bytes", kind, name, n)
			}
		}
	}
}

func TestHostileDirectories(t *testing.T) {
	f := simple(t, "x")
	layer := layerOf(t, f, 1).Digest.Encoded()
	fifo := func(name string) func(string) error {
		return func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, name)), syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		}
	}
	link := func(name string) func(string) error {
		return func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, name)),
				os.Symlink("/etc/passwd", filepath.Join(dir, name)))
		}
	}
	for name, spoil := range map[string]func(string) error{
		"FIFO as manifest": fifo("manifest.json"), "FIFO as version": fifo("version"), "FIFO as layer": fifo(layer),
		"link as manifest": link("manifest.json"), "link as layer": link(layer),
		"other version": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "version"), []byte("Directory Transport Version: 9.9\n"), 0o600)
		},
		"layer of 1 GiB": func(dir string) error { return os.Truncate(filepath.Join(dir, layer), 1<<30) },
		"no layer":       func(dir string) error { return os.Remove(filepath.Join(dir, layer)) },
		"large manifest": func(dir string) error { return os.Truncate(filepath.Join(dir, "manifest.json"), 1<<30) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "image")
			mustCopy(t, f, "dir:"+dir)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if _, err := read(ctx, quick(t, ClientOptions{}), "dir:"+dir); err == nil || ctx.Err() != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An archive gives what is in its tar, or an error.
func FuzzArchive(f *testing.F) {
	dir := f.TempDir()
	img := simple(f, "x")
	for n, members := range [][]member{layoutMembers(f, img), dockerMembers(f, img),
		{{name: "l", link: "l", kind: tar.TypeSymlink}}} {
		text, err := os.ReadFile(archiveOf(f, filepath.Join(dir, fmt.Sprint(n)), members...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "archive")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []transport.Name{transport.OCIArchive, transport.DockerArchive} {
			img, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), string(kind)+":"+path, v1.Platform{})
			if err != nil {
				continue
			}
			tree, err := img.Extract(t.Context(), []string{"."}, ExtractOptions{Temp: t.TempDir()})
			if err == nil {
				err = tree.Close()
			}
			if cerr := img.Close(); cerr != nil {
				t.Error(errors.Join(err, cerr))
			}
		}
	})
}
