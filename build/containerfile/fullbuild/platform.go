package fullbuild

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/platform"
)

// runnable returns an error if commands of an image for the platform cannot run here.
func runnable(p v1.Platform, binfmt string) error {
	if p.OS != "" && p.OS != "linux" {
		return fmt.Errorf("%s: RUN is supported for linux only", platform.Name(p))
	}
	if p.Architecture == "" || p.Architecture == runtime.GOARCH {
		return nil
	}
	if runtime.GOARCH == "amd64" && p.Architecture == "386" {
		return nil
	}
	machine := p.Architecture
	if name, ok := machines[machine]; ok {
		machine = name
	}
	entries, err := filepath.Glob(filepath.Join(binfmt, "*-"+machine))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if text, err := os.ReadFile(e); err == nil && strings.HasPrefix(string(text), "enabled") {
			return nil
		}
	}
	return fmt.Errorf("%s: RUN is not possible on %s: no emulator is registered in %s (install qemu-user-static, or "+
		"run the build on such a machine)",
		platform.Name(p), runtime.GOARCH, binfmt)
}

// machines are the architecture names of emulators that differ from Go's.
var machines = map[string]string{
	"amd64": "x86_64", "386": "i386", "arm64": "aarch64", "ppc64le": "ppc64le", "mips64le": "mips64el",
	"loong64": "loongarch64",
}
