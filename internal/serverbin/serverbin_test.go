package serverbin

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestOwnPlatformAlwaysHasAServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are of linux: another system has no server of its own to offer")
	}
	if own := runtime.GOOS + "/" + runtime.GOARCH; !slices.Contains(Platforms(), own) {
		t.Errorf("%v lacks %s", Platforms(), own)
	}
}

func TestEveryPlatformHasAStaticProgram(t *testing.T) {
	for _, p := range Platforms() {
		goos, goarch, _ := strings.Cut(p, "/")
		s, err := Find(goos, goarch)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		program, err := s.Bytes()
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if s.Self {
			if program, err = os.ReadFile(s.Path); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
		f, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if static, err := isStatic(bytes.NewReader(program)); err != nil || !static {
			t.Errorf("%s: static %v, %v", p, static, err)
		}
		if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390}[goarch]; f.Machine != want {
			t.Errorf("%s: a program for %s", p, f.Machine)
		}
	}
}

func TestUnknownPlatform(t *testing.T) {
	if _, err := Find("plan9", "mips"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}
