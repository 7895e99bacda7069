package serverbin

import (
	"crypto/sha256"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

func TestOwnPlatformAlwaysHasAServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are of linux: another system has no server of its own to offer")
	}
	own := runtime.GOOS + "/" + runtime.GOARCH
	if !slices.Contains(Platforms(), own) {
		t.Fatalf("%v lacks %s", Platforms(), own)
	}
	s, err := Find(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if s.Self == (s.Layer != nil) {
		t.Errorf("%+v is to be either embedded or the program itself", s)
	}
}

func TestEveryPlatformListedOpens(t *testing.T) {
	for _, p := range Platforms() {
		goos, goarch, _ := strings.Cut(p, "/")
		s, err := Find(goos, goarch)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if s.Self {
			continue
		}
		r, err := s.Open()
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		h := sha256.New()
		n, err := io.Copy(h, r)
		if err != nil || n < 1<<20 {
			t.Errorf("%s: %d bytes, %v", p, n, err)
		}
		if s.Layer.ProgramSize != n || s.Layer.Program != digest.NewDigest(digest.SHA256, h) {
			t.Errorf("%s: %+v, but %d bytes with the digest %x", p, s.Layer, n, h.Sum(nil))
		}
		checkLayer(t, s)
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestUnknownPlatform(t *testing.T) {
	if _, err := Find("plan9", "mips"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

// checkLayer compares the embedded layers of a server with their descriptions.
func checkLayer(t *testing.T, s Server) {
	t.Helper()
	check := func(l *Layer, open func() (io.ReadCloser, error), unpack func(io.Reader) (io.Reader, error)) {
		r, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		packed, plain := sha256.New(), sha256.New()
		z, err := unpack(io.TeeReader(r, packed))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(plain, z)
		if err != nil || n != l.Uncompressed || l.DiffID != digest.NewDigest(digest.SHA256, plain) ||
			l.Digest != digest.NewDigest(digest.SHA256, packed) {
			t.Errorf("%s: %+v, but %d bytes, %x and %x (%v)", s.Arch, l, n, packed.Sum(nil), plain.Sum(nil), err)
		}
	}
	check(s.Layer, s.OpenLayer, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	if s.Zstd != nil {
		check(s.Zstd, s.OpenZstd, func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) })
	} else if s.Arch == runtime.GOARCH {
		t.Errorf("the server of this platform, %s, is not embedded as zstd", s.Arch)
	}
}

func TestTrailer(t *testing.T) {
	l := Layer{Digest: "sha256:a", DiffID: "sha256:b", Size: 5, Uncompressed: 9, Program: "sha256:c", ProgramSize: 7}
	trailer, err := l.Trailer()
	if err != nil {
		t.Fatal(err)
	}
	read := func(file string) (*Layer, error) { return ReadTrailer(strings.NewReader(file), int64(len(file))) }
	if got, err := read("layer" + string(trailer)); err != nil || *got != l {
		t.Errorf("%+v, %v", got, err)
	}
	for _, file := range []string{"", "layer", "long layer" + string(trailer), "layer" + string(trailer[1:]),
		"layer" + string(trailer) + "x", trailerMark, "\xff\xff\xff\xff" + trailerMark} {
		if got, err := read(file); err == nil {
			t.Errorf("%q: %+v", file, got)
		}
	}
}
