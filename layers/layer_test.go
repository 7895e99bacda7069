package layers

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// sample is a layer with one entry of each kind and enough text to exercise the compressors.
func sample() Layer {
	var text bytes.Buffer
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40_000 {
		fmt.Fprintf(&text, "- name: operator.v%d.%d\n  image: registry/%x\n", i, rng.IntN(100), rng.Uint64())
	}
	return Layer{Name: "sample", Entries: []Entry{
		Bytes("configs/foo/catalog.yaml", 0o644, text.Bytes()),
		Bytes("bin/server", 0o755, text.Bytes()[:100_000]),
		symlink("bin/link", "server"),
		Hardlink("bin/again", "bin/server", 0o755),
		Dir("tmp", 0o777|fs.ModeSticky),
		Bytes("configs/foo-bar/a", 0o600, nil),
		Bytes(strings.Repeat("d", 120)+"/"+strings.Repeat("n", 200), 0o644, []byte("needs PAX")),
		Whiteout("old/dir"),
	}}
}

// The digests below are a promise to users: the same catalog has the same digest in every release. If a library update
// changes one, every layer of every catalog has to be pushed and pulled again; that needs a decision and a note to
// users. In that case the codec's generation in key.go has to be raised: otherwise caches return the old layers.
func TestDigestsAreGolden(t *testing.T) {
	golden := map[Compression]digest.Digest{
		Gzip:         "sha256:5e1a27cdfceca4c47bdce4ae5b4959b17ef4fc06a3c71ff8b7685fd93df4de56",
		Zstd:         "sha256:5ed083aefb43372de869471e9c8597d501e0de238b643fb33999c1b0ed243605",
		Uncompressed: "sha256:09fc5641a19f97c9196852e402a161ba7e44969740c6f411cfd365b48ee105ac",
	}
	for c, want := range golden {
		b, err := sample().Write(t.Context(), io.Discard, Options{Compression: c})
		if err != nil {
			t.Fatal(err)
		}
		if b.Digest != want || b.DiffID != golden[Uncompressed] {
			t.Errorf("%s: digest %s, diffID %s; want %s and %s: if this is meant, raise %[1]sGeneration", c, b.Digest,
				b.DiffID, want, golden[Uncompressed])
		}
	}
}

func TestWrittenBytesAreMeasured(t *testing.T) {
	for _, c := range []Compression{Gzip, Zstd, Uncompressed} {
		var out bytes.Buffer
		b, err := sample().Write(t.Context(), &out, Options{Compression: c})
		if err != nil {
			t.Fatal(err)
		}
		if b.Size != int64(out.Len()) || b.Digest != digest.FromBytes(out.Bytes()) {
			t.Errorf("%s: size or digest are not those of the bytes", c)
		}
		plain := unpack(t, c, &out)
		if b.Uncompressed != int64(len(plain)) || b.DiffID != digest.FromBytes(plain) {
			t.Errorf("%s: uncompressed size or diffID are not those of the bytes", c)
		}
	}
}

func unpack(t *testing.T, c Compression, r io.Reader) []byte {
	t.Helper()
	var err error
	switch c {
	case Gzip:
		var gz *gzip.Reader
		if gz, err = gzip.NewReader(r); err != nil {
			t.Fatal(err)
		}
		if gz.Header.Name != "" || gz.Header.ModTime.Unix() != 0 {
			t.Errorf("gzip header tells name %q and time %v", gz.Header.Name, gz.Header.ModTime)
		}
		r = gz
	case Zstd:
		if r, err = zstd.NewReader(r); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestTarHeaders(t *testing.T) {
	var out bytes.Buffer
	_, err := sample().Write(t.Context(), &out, Options{Compression: Uncompressed})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("d", 120)
	want := []string{
		"5 755 bin/", "2 777 bin/link>server", "0 755 bin/server",
		"5 755 configs/", "5 755 configs/foo/", "0 644 configs/foo/catalog.yaml", "5 755 configs/foo-bar/",
		"0 644 configs/foo-bar/a",
		"5 755 " + long + "/", "0 644 " + long + "/" + strings.Repeat("n", 200),
		"5 755 old/", "0 644 old/.wh.dir", "5 1777 tmp/", "1 755 bin/again>bin/server",
	}
	tr := tar.NewReader(&out)
	var got []string
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%c %o %s", h.Typeflag, h.Mode, h.Name)
		if h.Linkname != "" {
			line += ">" + h.Linkname
		}
		got = append(got, line)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s: uid %d gid %d %q %q time %v", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		if pax := strings.HasPrefix(h.Name, "ddd"); h.Format == tar.FormatUSTAR == pax {
			t.Errorf("%.20s: format %v", h.Name, h.Format)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The order of entries, the sizes of reads, reuse of a compressor, and other file metadata do not affect the bytes.
func TestLayerIsAFunctionOfItsContent(t *testing.T) {
	content := []byte(strings.Repeat("schema: olm.bundle\n", 50_000))
	build := func(dir string, mode fs.FileMode, reverse bool) digest.Digest {
		t.Helper()
		for _, name := range []string{"b", "a", "c"} {
			p := filepath.Join(dir, name)
			if err := os.WriteFile(p, append([]byte(name), content...), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(p, time.Time{}, time.Unix(int64(mode)*1e6, 0)); err != nil {
				t.Fatal(err)
			}
		}
		var l Layer
		for _, name := range []string{"a", "b", "c"} {
			e, err := File("configs/"+name, os.DirFS(dir), name)
			if err != nil {
				t.Fatal(err)
			}
			l.Entries = append(l.Entries, e)
		}
		if reverse {
			l.Entries[0], l.Entries[2] = l.Entries[2], l.Entries[0]
		}
		store := NewStore(t.TempDir())
		blobs, err := store.WriteAll(t.Context(), []Layer{sample(), l}, Options{Compression: Zstd}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return blobs[1].Digest
	}
	first := build(t.TempDir(), 0o644, false)
	if second := build(t.TempDir(), 0o600, true); second != first {
		t.Errorf("digests differ: %s, %s", first, second)
	}
}

func TestRefusedLayers(t *testing.T) {
	file := func(name string) Entry { return Bytes(name, 0o644, nil) }
	cases := map[string]struct {
		entries []Entry
		text    string
	}{
		"dotdot":             {[]Entry{file("a/../../b")}, "leaves the image root"},
		"absolute":           {[]Entry{file("/etc/passwd")}, "leaves the image root"},
		"empty":              {[]Entry{file("")}, "empty name"},
		"not clean":          {[]Entry{file("a//b")}, "not clean"},
		"NUL":                {[]Entry{file("a\x00b")}, "NUL"},
		"not UTF-8":          {[]Entry{file("a\xff")}, "UTF-8"},
		"long component":     {[]Entry{file(strings.Repeat("x", 256))}, "255"},
		"long path":          {[]Entry{file(strings.Repeat("x/", 600) + "y")}, "1024"},
		"twice":              {[]Entry{file("a"), file("a")}, "appears twice"},
		"child of file":      {[]Entry{file("a"), file("a/b")}, "not a directory"},
		"child of link":      {[]Entry{symlink("a", "/canary"), file("a/b")}, "not a directory"},
		"whiteout in a name": {[]Entry{file("configs/.wh.foo")}, "would hide"},
		"dangling hard link": {[]Entry{Hardlink("a", "b", 0o755)}, "no file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Layer{Name: "x", Entries: c.entries}.Write(t.Context(), io.Discard, Options{Compression: Gzip})
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}

func TestFileThatChangesIsAnError(t *testing.T) {
	for name, length := range map[string]int{"grew": 101, "shrank": 99} {
		t.Run(name, func(t *testing.T) {
			e := Bytes("a", 0o644, make([]byte, length))
			e.Size = 100
			dir := t.TempDir()
			_, err := NewStore(dir).Write(t.Context(), Layer{Entries: []Entry{e}}, Options{Compression: Gzip})
			if !errors.Is(err, ErrChanged) {
				t.Errorf("got %v", err)
			}
			left, _ := os.ReadDir(dir)
			if len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	fsys := fstest.MapFS{"d": {Mode: fs.ModeDir}, "p": {Mode: fs.ModeNamedPipe}}
	for name := range fsys {
		if _, err := File("x", fsys, name); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestPoolStopsAtTheFirstError(t *testing.T) {
	dir := t.TempDir()
	bad := Layer{Name: "bad",
		Entries: []Entry{{Name: "f", Size: 1, Open: func() (io.ReadCloser, error) { return nil, fs.ErrPermission }}}}
	_, err := NewStore(dir).WriteAll(t.Context(), []Layer{sample(), bad, sample()}, Options{Compression: Gzip}, 2, nil)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "layer bad") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledWriteLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := Bytes("a", 0o644, make([]byte, 10<<20))
	open := e.Open
	e.Open = func() (io.ReadCloser, error) { cancel(); return open() }
	dir := t.TempDir()
	if _, err := NewStore(dir).Write(ctx, Layer{Entries: []Entry{e}}, Options{Compression: Gzip}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func BenchmarkWrite(b *testing.B) {
	l := sample()
	for _, c := range []Compression{Gzip, Zstd} {
		b.Run(string(c), func(b *testing.B) {
			codec, err := newCodec(c)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(l.Size())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := write(b.Context(), io.Discard, codec, l, Options{Compression: c}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// symlink is the entry of a symbolic link.
func symlink(target, to string) Entry {
	return Entry{Name: target, Kind: KindSymlink, Mode: 0o777, Link: to}
}
