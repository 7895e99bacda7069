package medium_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// entry is a member of an archive that a test makes.
type entry struct {
	name, content string
	kind          byte
	records       map[string]string
}

func archiveOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(e.content)),
			PAXRecords: e.records}
		if e.kind != 0 {
			h.Typeflag, h.Size, h.Linkname = e.kind, 0, "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func openBytes(t testing.TB, segments ...[]byte) (*medium.Reader, error) {
	t.Helper()
	dir := t.TempDir()
	for i, content := range segments {
		if err := os.WriteFile(filepath.Join(dir, segmentName(i+1)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := medium.Open(context.Background(), dir)
	if err == nil {
		t.Cleanup(func() { r.Close() })
	}
	return r, err
}

const (
	hex1   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	hex2   = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752" // of "test2"
	layout = `{"imageLayoutVersion":"1.0.0"}`
	empty  = `{"schemaVersion":2,"manifests":[]}`
	peer   = "docker/registry/v2/"
	at     = peer + "repositories/acme/app/_manifests/tags/v1/current/link"
)

func blobEntry(hex, content string) entry {
	return entry{name: "blobs/sha256/" + hex, content: content}
}

// Archives that break a rule are refused, by a class and a word; others are read, without what is of no use.
func TestHostileArchives(t *testing.T) {
	good := []entry{{name: "oci-layout", content: layout}, {name: "index.json", content: empty}}
	with := func(more ...entry) []byte { return archiveOf(t, append(more, good...)...) }
	index := func(text string) []byte {
		return archiveOf(t, entry{name: "oci-layout", content: layout}, entry{name: "index.json", content: text})
	}
	contents := func(text string) []byte { return with(entry{name: "bindery-mirror.json", content: text}) }
	deep := strings.Repeat("d/", 200) + "f"
	whole := with(blobEntry(hex1, strings.Repeat("test", 300)))
	for _, c := range []struct {
		name    string
		content []byte
		class   fault.Class
		word    string
	}{
		{"good", with(blobEntry(hex1, "test")), 0, ""},
		{"a link, a device, a directory", with(entry{name: "blobs/sha256/" + hex1, kind: tar.TypeSymlink},
			entry{name: "blobs/sha256/" + hex2, kind: tar.TypeLink}, entry{name: "x", kind: tar.TypeChar},
			entry{name: "working-dir", kind: tar.TypeDir}, entry{name: "y", kind: tar.TypeFifo}), 0, ""},
		{"foreign files", with(entry{name: "etc/passwd", content: "x"}), 0, ""},
		{"above", with(entry{name: "working-dir/../../canary", content: "x"}), fault.Input, "leaves"},
		{"absolute", with(entry{name: "/working-dir/x", content: "x"}), fault.Input, "absolute"},
		{"deep", with(entry{name: deep, content: "x"}), fault.Limit, "deep"},
		{"control characters", with(entry{name: "working-dir/a\n\x1b[31m", content: "x"}), fault.Input, "control"},
		{"no text", with(entry{name: "working-dir/\xff\xfe", content: "x"}), fault.Input, "UTF-8"},
		{"a file twice", with(entry{name: "working-dir/a"}, entry{name: "working-dir/./a"}), fault.Input, "twice"},
		{"a file below a file", with(entry{name: "working-dir/a"}, entry{name: "working-dir/a/b"}), fault.Input,
			"below the file"},
		{"an index twice", with(entry{name: "index.json", content: empty}), fault.Input, "twice"},
		{"a blob twice", with(blobEntry(hex1, "test"), blobEntry(hex1, "test")), 0, ""},
		{"a blob twice, other sizes", with(blobEntry(hex1, "test"), blobEntry(hex1, "testx")), fault.Input, "twice"},
		{"sparse", bytes.ReplaceAll(with(entry{name: "blobs/sha256/" + hex1, content: "1\n1099511627776\n0\n" +
			strings.Repeat("\x00", 494), records: map[string]string{"XNU.sparse.major": "1", "XNU.sparse.minor": "0",
			"XNU.sparse.name": "s", "XNU.sparse.realsize": "1099511627776"}}), []byte("XNU.sparse"),
			[]byte("GNU.sparse")), fault.Limit, "sparse"},
		{"no layout", archiveOf(t, entry{name: "index.json", content: empty}), fault.Integrity, "last segment"},
		{"no index", archiveOf(t, blobEntry(hex1, "test")), fault.Integrity, "last segment"},
		{"another version of the layout", archiveOf(t, entry{name: "oci-layout", content: `{"imageLayoutVersion":"2"}`},
			entry{name: "index.json", content: empty}), fault.Input, "version"},
		{"index: no JSON", index("{"), fault.Input, "index.json"},
		{"index: no list", index(`{"schemaVersion":2,"manifests":{}}`), fault.Input, "list"},
		{"index: two lists", index(`{"schemaVersion":2,"manifests":[],"manifests":[]}`), fault.Input, "two lists"},
		{"index: text behind it", index(empty + "x"), fault.Input, "behind"},
		{"index: version", index(`{"manifests":[]}`), fault.Input, "schemaVersion"},
		{"index: a digest", index(`{"schemaVersion":2,"manifests":[{"digest":"sha256:../../x"}]}`), fault.Input,
			"digest"},
		{"index: a size", index(`{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex1 + `","size":-1}]}`),
			fault.Input, "size"},
		{"index: a path", index(`{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex1 +
			`","annotations":{"org.opencontainers.image.ref.name":"../x:v1"}}]}`), fault.Input, "path"},
		{"index: a tag", index(`{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex1 +
			`","annotations":{"org.opencontainers.image.ref.name":"x:v 1"}}]}`), fault.Input, "tag"},
		{"index: a tag twice", index(`{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex1 +
			`","annotations":{"org.opencontainers.image.ref.name":"x:v"}},{"digest":"sha256:` + hex2 +
			`","annotations":{"org.opencontainers.image.ref.name":"x:v"}}]}`), fault.Input, "twice"},
		{"contents: no JSON", contents("]"), fault.Input, "bindery-mirror.json"},
		{"contents: later version", contents(`{"version":99}`), fault.Input, "version 99"},
		{"contents: a segment is missing", contents(
			`{"version":1,"segments":[{"name":"mirror_000001.tar"},{"name":"mirror_000002.tar"}]}`), fault.Integrity,
			"mirror_000002.tar is missing"},
		{"contents: another segment", contents(`{"version":1,"segments":[{"name":"mirror_000001.tar","bytes":7}]}`),
			fault.Integrity, "another archive"},
		{"contents: a name", contents(`{"version":1,"segments":[{"name":"../x"}]}`), fault.Input,
			`segments: invalid: the name "../x" of a segment`},
		{"contents: number 0", contents(`{"version":1,"segments":[{"name":"mirror_000000.tar"}]}`), fault.Input,
			"counted from 1"},
		{"contents: a gap", contents(
			`{"version":1,"segments":[{"name":"mirror_000001.tar"},{"name":"mirror_000003.tar"}]}`), fault.Input,
			"mirror_000002.tar is missing"},
		{"contents: of later segments", contents(`{"version":1,"segments":[{"name":"mirror_000002.tar"}]}`),
			fault.Integrity, "mirror_000002.tar is missing"},
		{"no end", whole[:len(whole)-1024], fault.Integrity, "end of archive"},
		{"cut in a blob", whole[:1000], fault.Integrity, "cut off"},
		{"cut in a header", whole[:300], fault.Integrity, "end"},
		{"nothing", nil, fault.Integrity, "end"},
		{"two archives in one", append(bytes.Clone(whole), whole...), fault.Input, "after the end"},
		{"much after the end", append(bytes.Clone(whole), make([]byte, 2<<20)...), fault.Input, "after the end"},
		{"no archive", bytes.Repeat([]byte("text "), 300), fault.Input, "archive"},
		{"a link of a tag: no digest", archiveOf(t, entry{name: at, content: "sha256:x"}), fault.Input, "digest"},
		{"a link of a tag: long", archiveOf(t, entry{name: at, content: strings.Repeat("x", 300)}), fault.Input, "300"},
		{"links of a tag that differ", archiveOf(t, entry{name: at, content: "sha256:" + hex1},
			entry{name: at, content: "sha256:" + hex2}), fault.Input, "twice"},
		{"a tag", archiveOf(t, entry{name: strings.Replace(at, "v1", "v 1", 1), content: "sha256:" + hex1}),
			fault.Input, "tag"},
		{"a path", archiveOf(t, entry{name: strings.Replace(at, "acme", "ACME", 1), content: "sha256:" + hex1}),
			fault.Input, "path"},
		{"odd blobs of the peer", archiveOf(t, entry{name: peer + "blobs/sha256/00/" + hex1 + "/data", content: "test"},
			entry{name: peer + "blobs/sha512/00/x/data", content: "test"}, entry{name: at, content: "sha256:" + hex1}),
			0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openBytes(t, c.content)
			if c.class == 0 && err != nil || c.class != 0 && (fault.ClassOf(err) != c.class ||
				!strings.Contains(err.Error(), c.word)) {
				t.Errorf("%v (class %d)", err, fault.ClassOf(err))
			}
			if err != nil && (strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 600) {
				t.Errorf("%q", err)
			}
		})
	}
}

// Content that is not what its name says is found when it is read.
func TestContentThatLies(t *testing.T) {
	for _, prefix := range []string{"", peer} {
		name := "blobs/sha256/" + hex1
		link := entry{name: "index.json", content: `{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex1 +
			`","size":4,"annotations":{"org.opencontainers.image.ref.name":"acme/app:v1"}}]}`}
		if prefix != "" {
			name, link = peer+"blobs/sha256/"+hex1[:2]+"/"+hex1+"/data", entry{name: at, content: "sha256:" + hex1}
		}
		r, err := openBytes(t, archiveOf(t, entry{name: name, content: "tesu"}, link,
			entry{name: "oci-layout", content: layout}))
		if err != nil {
			t.Fatal(err)
		}
		p := r.Repository("acme/app")
		if _, _, err := p.Manifest(context.Background(), "v1"); !errors.Is(err, fault.ErrIntegrity) {
			t.Error(err)
		}
		d := blobOf(layerType, []byte("test")).Descriptor
		if f, err := p.Blob(context.Background(), d, 0); err != nil {
			t.Error(err)
		} else if _, err := f.Read(make([]byte, 10)); err != nil {
			t.Error(err)
		} else if _, err := f.Read(make([]byte, 10)); !errors.Is(err, fault.ErrIntegrity) {
			t.Error(err)
		}
		d.Size = 5
		if _, err := p.Blob(context.Background(), d, 0); !errors.Is(err, fault.ErrIntegrity) {
			t.Error(err)
		}
		if _, err := p.Blob(context.Background(), blobOf(layerType, []byte("x")).Descriptor, 0); !errors.Is(err,
			fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// A blob among the files of oc-mirror's working directory counts where the storage of the registry has none, and must be
// what its name says.
func TestBlobsAmongFiles(t *testing.T) {
	const stray = "working-dir/operator-catalogs/catalog/x/catalog-image/blobs/sha256/"
	good := blobOf(layerType, []byte("test")).Descriptor
	for name, c := range map[string]struct {
		among, stored string
		want          error
	}{
		"alone":            {"test", "", nil},
		"alone, and other": {"tesu", "", fault.ErrIntegrity},
		"other bytes":      {"tesu", "test", nil},
		"other size":       {"tests", "test", nil},
	} {
		t.Run(name, func(t *testing.T) {
			hex := good.Digest.Encoded()
			entries := []entry{{name: stray + hex, content: c.among}, {name: at, content: "sha256:" + hex1}}
			if c.stored != "" {
				entries = append(entries, entry{name: peer + "blobs/sha256/" + hex[:2] + "/" + hex + "/data", content: c.stored})
			}
			r, err := openBytes(t, archiveOf(t, entries...))
			if err != nil {
				t.Fatal(err)
			}
			f, err := r.Repository("acme/app").Blob(context.Background(), good, 0)
			if err == nil {
				_, err = io.ReadAll(f)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v instead of %v", err, c.want)
			}
		})
	}
}

// Segments that are missing, or are links, are reported.
func TestSegmentFiles(t *testing.T) {
	s := newSample(t)
	done := t.TempDir()
	w := create(t, done, medium.Options{SegmentBytes: 1 << 20})
	s.write(t, w)
	all := finish(t, w, medium.Contents{}).Segments
	if len(all) < 3 {
		t.Fatal(all)
	}
	for i, seg := range all {
		dir := t.TempDir()
		for j, other := range all {
			if i != j {
				copyFile(t, filepath.Join(done, other.Name), filepath.Join(dir, other.Name))
			}
		}
		_, err := medium.Open(context.Background(), dir)
		if !errors.Is(err, fault.ErrIntegrity) || !strings.Contains(err.Error(), "mirror_") {
			t.Error(err)
		}
		if runtime.GOOS == "windows" {
			continue
		}
		if err := os.Symlink(filepath.Join(done, seg.Name), filepath.Join(dir, seg.Name)); err != nil {
			t.Fatal(err)
		}
		if _, err := medium.Open(context.Background(), dir); !errors.Is(err, fault.ErrInvalid) {
			t.Error(err)
		}
	}
	if _, err := medium.Open(context.Background(), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Names that are no files of an archive are refused when it is written.
func TestNamesOfFiles(t *testing.T) {
	w := create(t, t.TempDir(), medium.Options{})
	for name, good := range map[string]bool{"working-dir/a": true, "isc_x": true, "isc_x/y": false, "index.json": false,
		"working-dir/../a": false, "/working-dir/a": false, "working-dir/bindery-mirror.json": false, "": false,
		"blobs/sha256/" + hex1: false} {
		err := w.AddFile(context.Background(), name, 1, strings.NewReader("x"))
		if good && err != nil || !good && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, text := range map[string]string{"working-dir/a": "x", "working-dir/b": "xy", "working-dir/c": ""} {
		if err := w.AddFile(context.Background(), name, 1, strings.NewReader(text)); err == nil {
			t.Errorf("%q", text)
		}
	}
}

// FuzzOpen opens any bytes as a segment and reads all that the index has.
func FuzzOpen(f *testing.F) {
	image := simple(f, "app", 1, 10)
	for _, form := range bothForms {
		dir := f.TempDir()
		w := create(f, dir, medium.Options{Form: form})
		write(f, w.Repository("acme/app"), image, "v1")
		finish(f, w, medium.Contents{})
		content, err := os.ReadFile(filepath.Join(dir, "mirror_000001.tar"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add(archiveOf(f, entry{name: at, content: "sha256:" + hex1}, entry{name: "working-dir/.history/.history-" +
		"2026-01-01T00:00:00Z", content: "sha256:" + hex1 + "\n"}))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := openBytes(t, content)
		if err != nil {
			return
		}
		readAll(t, r)
	})
}

// readAll reads what an archive has; only errors of a class are allowed.
func readAll(t *testing.T, r *medium.Reader) {
	ctx := context.Background()
	for _, path := range r.Repositories() {
		p := r.Repository(path)
		for tag, d := range r.Tags(path) {
			_, _, err := p.Manifest(ctx, tag)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && fault.ClassOf(err) == 0 {
				t.Errorf("%s: %v", tag, err)
			}
			if _, err := p.Referrers(ctx, d, nil); err != nil && fault.ClassOf(err) == 0 {
				t.Error(err)
			}
		}
	}
	if _, err := r.LeftOut(ctx); err != nil && fault.ClassOf(err) == 0 {
		t.Error(err)
	}
	err := fs.WalkDir(r.Files(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			_, err = e.Info()
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// FuzzIndex opens an archive with any index.json and any description of itself.
func FuzzIndex(f *testing.F) {
	d := fmt.Sprintf(`"digest":"sha256:%s","size":4`, hex1)
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{`+d+
		`,"annotations":{"org.opencontainers.image.ref.name":"a/b:v1"}},{`+
		d+`,"annotations":{"io.github.operator-bindery.mirror.repository":"a/b",`+
		`"io.github.operator-bindery.mirror.subject":"sha256:`+hex2+`"}}]}`),
		[]byte(`{"version":1,"segments":[{"name":"mirror_000001.tar"}],"leftOut":[{`+d+`}]}`))
	f.Add([]byte(empty), []byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, index, contents []byte) {
		r, err := openBytes(t, archiveOf(t, blobEntry(hex1, "test"), entry{name: "oci-layout", content: layout},
			entry{name: "index.json", content: string(index)},
			entry{name: "bindery-mirror.json", content: string(contents)}))
		if err != nil {
			return
		}
		if !r.Has(digest.Digest("sha256:" + hex1)) {
			t.Error("the blob is not there")
		}
		readAll(t, r)
	})
}
