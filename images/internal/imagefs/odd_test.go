package imagefs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// tarWith is an archive with one file "configs/a" whose header edit has changed.
func tarWith(t testing.TB, edit func(*tar.Header)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Name: "configs/a", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}
	edit(h)
	err := w.WriteHeader(h)
	if err == nil {
		_, err = w.Write([]byte("x"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What a header says of owners, rights and times is left behind.
func TestOddHeadersAreNeutralised(t *testing.T) {
	for name, edit := range map[string]func(*tar.Header){
		"setuid":    func(h *tar.Header) { h.Mode = 0o6755 },
		"sticky":    func(h *tar.Header) { h.Mode = 0o1000 },
		"no rights": func(h *tar.Header) { h.Mode = 0 },
		"capability": func(h *tar.Header) {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}
		},
		"huge owner":    func(h *tar.Header) { h.Uid, h.Gid, h.Format = 1<<40, 1<<40, tar.FormatGNU },
		"far future":    func(h *tar.Header) { h.ModTime, h.Format = time.Unix(1<<40, 0), tar.FormatGNU },
		"before 1970":   func(h *tar.Header) { h.ModTime, h.Format = time.Unix(-1<<30, 0), tar.FormatGNU },
		"names of user": func(h *tar.Header) { h.Uname, h.Gname = "\x1b[31m", "\x1b[31m" },
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := extract(t, stack(nil, plainLayer(tarWith(t, edit))), limit.Limits{}, "configs")
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			for path, mode := range map[string]fs.FileMode{"configs/a": 0o644, "configs": fs.ModeDir | 0o755} {
				info, err := fs.Stat(tree, path)
				if err != nil || info.Mode() != mode || !info.ModTime().IsZero() {
					t.Errorf("%s: %v, %v", path, info, err)
				}
			}
		})
	}
}

func TestMoreHostileLayers(t *testing.T) {
	f := func(name string) entry { return entry{name: name, body: "x"} }
	sym := func(name, to string) entry { return entry{name: name, link: to, kind: tar.TypeSymlink} }
	secret := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Ten members of a gzip stream are one archive of zeros that a reader of the first member does not see.
	var streams bytes.Buffer
	for range 300 {
		w, _ := gzip.NewWriterLevel(&streams, gzip.BestCompression)
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	var bomb bytes.Buffer
	z, _ := zstd.NewWriter(&bomb, zstd.WithWindowSize(1<<20))
	tw := tar.NewWriter(z)
	if err := tw.WriteHeader(&tar.Header{Name: "configs/bomb", Size: 1 << 33, Mode: 0o644,
		Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := tw.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	pax := tarOf(t, entry{name: "header", body: "2097173 path=configs/" + strings.Repeat("a", 2<<20) + "\n"},
		f("configs/x"))
	pax[156] = tar.TypeXHeader
	fixSum(pax)
	gnu := tarOf(t, f("configs/s"))
	gnu[156] = tar.TypeGNUSparse
	fixSum(gnu)
	for name, c := range map[string]struct {
		layer rawLayer
		class error
		text  string
	}{
		"hardlink-through-symlink": {plainLayer(tarOf(t, sym("configs/a", "/canary"),
			entry{name: "configs/a/secret", link: "/etc/passwd", kind: tar.TypeLink})), fault.ErrInvalid, "symlink"},
		"whiteout-via-symlink": {plainLayer(tarOf(t, sym("configs/a", "/canary"), f("configs/a/.wh.secret"))),
			fault.ErrInvalid, "symlink"},
		"opaque-via-symlink": {plainLayer(tarOf(t, sym("configs/a", "/canary"), f("configs/a/.wh..wh..opq"))),
			fault.ErrInvalid, "symlink"},
		"symlink above":     {plainLayer(tarOf(t, sym("configs", "/etc"))), fault.ErrInvalid, "symlink"},
		"symlink-to-secret": {plainLayer(tarOf(t, sym("configs/z.json", secret))), fault.ErrInvalid, "symlink"},
		"pax-2MiB-record":   {plainLayer(pax), fault.ErrInvalid, ""},
		"old-gnu-sparse":    {plainLayer(gnu), nil, ""},
		"gzip-multistream-bomb": {rawLayer{streams.Bytes(), v1.MediaTypeImageLayerGzip, digest.FromString("")}, nil,
			""},
		"zstd-bomb": {rawLayer{bomb.Bytes(), v1.MediaTypeImageLayerZstd, digest.FromString("")},
			fault.ErrLimit, string(limit.Ratio)},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := extract(t, stack(nil, c.layer), limit.Limits{File: 1 << 40}, "configs")
			runtime.ReadMemStats(&after)
			if err == nil || c.class != nil && !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.text) ||
				strings.Contains(err.Error(), "a secret") {
				t.Errorf("got %.400v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
}

// fixSum makes the checksum of an archive's first header right again.
func fixSum(archive []byte) {
	copy(archive[148:156], "        ")
	sum := 0
	for _, b := range archive[:512] {
		sum += int(b)
	}
	copy(archive[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// A whiteout has nothing below it; what other tools keep in such names is passed over.
func TestBelowWhiteouts(t *testing.T) {
	lower := plainLayer(tarOf(t, entry{name: "configs/a/b", body: "x"}))
	_, err := extract(t, stack(nil, lower, plainLayer(tarOf(t, entry{name: "configs/.wh.a/b", body: "y"}))),
		limit.Limits{}, "configs")
	if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "below a whiteout") {
		t.Errorf("got %v", err)
	}
	tree, err := extract(t,
		stack(nil, lower,
			plainLayer(tarOf(t, entry{name: "configs/.wh..wh.plnk/b", body: "y"}, entry{name: ".wh..wh.aufs"}))),
		limit.Limits{}, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if got := content(t, tree); len(got) != 1 || got["configs/a/b"] != "x" {
		t.Errorf("got %v", got)
	}
}
