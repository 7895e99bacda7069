package serverbin

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
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
	r, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := filepath.Join(t.TempDir(), "server")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, r); err != nil {
		t.Fatal(err)
	}
	if _, err := elf.NewFile(f); err != nil {
		t.Errorf("the server is not a program: %v", err)
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
		if size, err := s.Size(); err != nil || size != n {
			t.Errorf("%s: size %d, %v, but %d bytes", p, size, err, n)
		}
		if sum, err := s.Digest(); err != nil || sum != nil && !bytes.Equal(sum, h.Sum(nil)) {
			t.Errorf("%s: digest %x, %v, but %x", p, sum, err, h.Sum(nil))
		}
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
