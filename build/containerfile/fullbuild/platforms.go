//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"errors"
	"runtime"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// binfmtDir lists the emulators that the kernel uses for programs of other architectures.
const binfmtDir = "/proc/sys/fs/binfmt_misc"

// platforms returns the platforms to build for.
func (r Request) platforms() []v1.Platform {
	if len(r.Platforms) == 0 {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}
	}
	return r.Platforms
}

// foreign refuses platforms whose programs cannot run on this machine, all together.
func (r Request) foreign() error {
	var errs []error
	for _, p := range r.platforms() {
		errs = append(errs, runnable(p, binfmtDir))
	}
	return errors.Join(errs...)
}

// created returns the time of everything in the image.
func (r Request) created() time.Time {
	if r.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return r.Created.UTC()
}
