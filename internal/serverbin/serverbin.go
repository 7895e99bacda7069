// Package serverbin holds the small server programs, one per platform, that go into catalog images. They are embedded,
// compressed, when the program is built by "make build"; a program that was built without them offers itself for its own
// platform.
package serverbin

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// ErrNoServer is the error for a platform that has no server here.
var ErrNoServer = errors.New("no server program")

// Server is the server program of one platform.
type Server struct {
	OS, Arch string
	// Self is true where the program offers itself, in place of the small server.
	Self bool
	// Path is the file of a server that is Self.
	Path string
	name string // of an embedded one
}

// Bytes returns the program; nil for one that is Self, which is read from its Path.
func (s Server) Bytes() ([]byte, error) {
	if s.Self {
		return nil, nil
	}
	compressed, err := fs.ReadFile(embedded, s.name)
	if err != nil {
		return nil, err
	}
	var h zstd.Header
	if err := h.Decode(compressed); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	// The frame tells the size: one allocation, and no window beside it.
	program, err := d.DecodeAll(compressed, make([]byte, 0, h.FrameContentSize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return program, nil
}

// Find returns the server for a platform, such as linux and arm64. The error is [ErrNoServer] where there is none. It is
// safe for concurrent use.
func Find(goos, goarch string) (Server, error) {
	s := Server{OS: goos, Arch: goarch}
	name := "bin/opm-server-" + goos + "-" + goarch + ".zst"
	if _, err := fs.Stat(embedded, name); err == nil {
		s.name = name
		return s, nil
	}
	if goos != "linux" || runtime.GOOS != "linux" || goarch != runtime.GOARCH {
		return Server{}, fmt.Errorf("%w for %s/%s: this program holds %s; build it with \"make build\" to have all", ErrNoServer, goos, goarch, held())
	}
	var err error
	s.Self = true
	s.Path, err = self()
	return s, err
}

// Platforms are the platforms that have a server here, as os/arch, sorted.
func Platforms() []string {
	var out []string
	entries, err := fs.ReadDir(embedded, "bin")
	if err == nil {
		for _, e := range entries {
			if name, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".zst"), "opm-server-"); ok {
				out = append(out, strings.Replace(name, "-", "/", 1))
			}
		}
	}
	if own := runtime.GOOS + "/" + runtime.GOARCH; runtime.GOOS == "linux" && !slices.Contains(out, own) {
		out = append(out, own)
	}
	slices.Sort(out)
	return out
}

func held() string {
	if p := Platforms(); len(p) > 0 {
		return "one for " + strings.Join(p, ", ")
	}
	return "none"
}

// self is the file of the running program. It can only be a server in an image if it is static.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open this program: %w", err)
	}
	static, err := isStatic(f)
	if err == nil && !static {
		err = fmt.Errorf("%s is linked dynamically and cannot run in an image: build it with CGO_ENABLED=0", path)
	}
	return path, errors.Join(err, f.Close())
}

// isStatic is true for an ELF program that asks for no interpreter.
func isStatic(r io.ReaderAt) (bool, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return false, fmt.Errorf("this program is not ELF: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}
