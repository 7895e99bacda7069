package imagefs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

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
			for _, memory := range []int64{1 << 20, 1} { // both in memory and in a file, and layers read ahead
				s := stack(nil, c.layers...)
				s.Slow = memory == 1
				tree, err := extract(t, s, limit.Limits{Memory: memory}, "/configs")
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
			_, err := extract(t, stack(nil, c.layers...), limit.Limits{File: 2000, Entries: 5}, ".")
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
			_, err := extract(t, stack(nil, c.layer), limit.Limits{File: 4 << 30}, "configs")
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

func FuzzExtract(f *testing.F) {
	f.Add(tarOf(f, entry{name: "configs/a", body: "x"}, entry{name: "configs/.wh.b"}))
	f.Add(tarOf(f, entry{name: "a", link: "/etc", kind: tar.TypeSymlink}, entry{name: "a/b", body: "x"}))
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := extract(t, stack(nil, plainLayer(text)), limit.Limits{}, ".")
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

// Layers from which nothing can come any more are not opened.
func TestExtractStopsEarly(t *testing.T) {
	file := func(name string) entry { return entry{name: name, body: name} }
	dir := func(name string) entry { return entry{name: name, kind: tar.TypeDir} }
	layer := func(es ...entry) rawLayer { return gzipLayer(t, tarOf(t, es...)) }
	for name, c := range map[string]struct {
		upper  []entry
		wanted []string
		opened int
	}{
		"file found":             {[]entry{file("db/index.db")}, []string{"db/index.db"}, 1},
		"file replaced":          {[]entry{file("db")}, []string{"db/index.db"}, 1},
		"file removed":           {[]entry{file("db/.wh.index.db")}, []string{"db/index.db"}, 1},
		"directory removed":      {[]entry{file(".wh.configs")}, []string{"configs"}, 1},
		"removed and made again": {[]entry{file(".wh.configs"), file("configs/a")}, []string{"configs"}, 1},
		"opaque": {[]entry{dir("configs"), file("configs/.wh..wh..opq"), file("configs/a")},
			[]string{"configs"}, 1},
		"opaque above": {[]entry{dir("a"), file("a/.wh..wh..opq"), file("a/configs/a")},
			[]string{"a/configs"}, 1},
		"opaque root": {[]entry{file(".wh..wh..opq"), file("configs/a")}, []string{"."}, 1},
		"one of two":  {[]entry{file("db/index.db")}, []string{"db/index.db", "configs"}, 2},
		"directory":   {[]entry{file("configs/a")}, []string{"configs"}, 2},
		"opaque below": {[]entry{dir("configs/a"), file("configs/a/.wh..wh..opq")}, []string{"configs"},
			2},
		"whole image":               {[]entry{file("configs/a")}, []string{"."}, 2},
		"directory where file was":  {[]entry{dir("db/index.db")}, []string{"db/index.db"}, 2},
		"nothing wanted, all there": {[]entry{file("configs/a")}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			opened := map[digest.Digest]bool{}
			s := stack(func(d digest.Digest) { opened[d] = true }, layer(file("lower")), layer(c.upper...))
			tree, err := extract(t, s, limit.Limits{}, c.wanted...)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			if n := len(opened); n != c.opened {
				t.Errorf("%d layers were opened instead of %d", n, c.opened)
			}
		})
	}
}

func TestCopyFile(t *testing.T) {
	file := func(name, body string) entry { return entry{name: name, body: body} }
	layer := func(es ...entry) rawLayer { return gzipLayer(t, tarOf(t, es...)) }
	lower := layer(file("db/index.db", "old"), file("db/other", "x"))
	broken := layer(file("db/index.db", "new"))
	broken.diffID = digest.FromString("another")
	for name, c := range map[string]struct {
		layers []rawLayer
		name   string
		want   string
		class  error
	}{
		"in the lower layer": {[]rawLayer{lower, layer(file("x", "x"))}, "/db/index.db", "old", nil},
		"in both":            {[]rawLayer{lower, layer(file("db/index.db", "new"))}, "db/index.db", "new", nil},
		"removed": {[]rawLayer{lower, layer(file("db/.wh.index.db", ""))}, "db/index.db", "",
			fs.ErrNotExist},
		"nowhere":   {[]rawLayer{lower}, "db/none", "", fs.ErrNotExist},
		"directory": {[]rawLayer{lower}, "db", "", fault.ErrInvalid},
		"directory instead": {[]rawLayer{lower, layer(entry{name: "db/index.db", kind: tar.TypeDir})}, "db/index.db",
			"", fault.ErrInvalid},
		"link": {[]rawLayer{lower,
			layer(entry{name: "db/index.db", link: "/etc/passwd", kind: tar.TypeSymlink})}, "db/index.db", "",
			fault.ErrInvalid},
		"link above": {[]rawLayer{lower, layer(entry{name: "db", link: "/etc", kind: tar.TypeSymlink})},
			"db/index.db", "", fault.ErrInvalid},
		"twice": {[]rawLayer{layer(file("db/index.db", "a"), file("db/index.db", "b"))}, "db/index.db", "",
			fault.ErrInvalid},
		"wrong diffID": {[]rawLayer{broken}, "db/index.db", "", fault.ErrIntegrity},
		"too large": {[]rawLayer{layer(file("db/index.db", strings.Repeat("x", 2001)))}, "db/index.db", "",
			fault.ErrLimit},
		"leaves": {[]rawLayer{lower}, "../x", "", fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			n, err := stack(nil, c.layers...).CopyFile(t.Context(), c.name, &b, limit.Limits{File: 2000}, "")
			if !errors.Is(err, c.class) ||
				c.class == nil && (err != nil || b.String() != c.want || n != int64(len(c.want))) {
				t.Errorf("got %d %q, %v", n, b.String(), err)
			}
		})
	}
	t.Run("writer fails", func(t *testing.T) {
		r, w := io.Pipe()
		full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
		r.CloseWithError(full)
		if _, err := stack(nil, lower).CopyFile(t.Context(), "db/index.db", w, limit.Limits{}, ""); !errors.Is(err, syscall.ENOSPC) ||
			errors.Is(err, fault.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

// The error of a limit that is an option says which one it is.
func TestLimitsNameThemselves(t *testing.T) {
	f := stack(nil, gzipLayer(t, tarOf(t, entry{name: "a", body: strings.Repeat("x", 2000)}, entry{name: "b"})))
	for want, limits := range map[limit.Limit]limit.Limits{
		limit.File: {File: 1999}, limit.Entries: {Entries: 1}, limit.Uncompressed: {Uncompressed: 2000},
		limit.Compressed: {Compressed: 10},
	} {
		_, err := extract(t, f, limits, ".")
		var limit *limit.Error
		if !errors.As(err, &limit) || limit.Limit != want || !errors.Is(err, fault.ErrLimit) ||
			!strings.Contains(err.Error(), string(want)) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
