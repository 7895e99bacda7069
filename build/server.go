package build

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/layers"
)

// Server is the program that serves a catalog image of one platform. Make it with [ServerFile] or [ServerBytes].
type Server struct {
	Platform v1.Platform
	program  layers.Entry
}

// The names of what is in the layer of the server.
const (
	serverPath   = "bin/opm"
	probePath    = "bin/grpc_health_probe"
	nsswitchPath = "etc/nsswitch.conf"
)

// nsswitch makes the hosts file win over DNS, also with C libraries that need to be told.
const nsswitch = "hosts: files dns\n"

// ServerFile is the program in a file. It must be a static ELF program for the platform, and must not change until the
// image is built.
func ServerFile(path string, p v1.Platform) (Server, error) {
	f, err := os.Open(path)
	if err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Server{}, fmt.Errorf("server: %s is not a regular file", path)
	}
	if err := checkProgram(f, info.Size(), p); err != nil {
		return Server{}, fmt.Errorf("server: %s: %w", path, err)
	}
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	e, err := layers.File(serverPath, os.DirFS(dir), name)
	if err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	e.Mode = 0o755
	return Server{Platform: p, program: e}, nil
}

// ServerBytes is the program in memory, under the same conditions.
func ServerBytes(program []byte, p v1.Platform) (Server, error) {
	if err := checkProgram(bytes.NewReader(program), int64(len(program)), p); err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	return Server{Platform: p, program: layers.Bytes(serverPath, 0o755, program)}, nil
}

// machines are the architectures that images of servers are made for.
var machines = map[string]struct {
	machine elf.Machine
	class   elf.Class
	data    elf.Data
}{
	"amd64":   {elf.EM_X86_64, elf.ELFCLASS64, elf.ELFDATA2LSB},
	"arm64":   {elf.EM_AARCH64, elf.ELFCLASS64, elf.ELFDATA2LSB},
	"ppc64le": {elf.EM_PPC64, elf.ELFCLASS64, elf.ELFDATA2LSB},
	"s390x":   {elf.EM_S390, elf.ELFCLASS64, elf.ELFDATA2MSB},
	"riscv64": {elf.EM_RISCV, elf.ELFCLASS64, elf.ELFDATA2LSB},
}

// checkProgram refuses what would not run on the platform in an image that has nothing but the program.
func checkProgram(r io.ReaderAt, size int64, p v1.Platform) error {
	want, known := machines[p.Architecture]
	if p.OS != "linux" || !known {
		return fmt.Errorf("no server can be put into an image for %s/%s", p.OS, p.Architecture)
	}
	if size == 0 {
		return errors.New("the file is empty")
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return fmt.Errorf("not an ELF program: %w", err)
	}
	defer f.Close()
	if f.Machine != want.machine || f.Class != want.class || f.Data != want.data {
		return fmt.Errorf("a program for %s %s, not for %s", f.Machine, f.Class, p.Architecture)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return fmt.Errorf("not a program but an ELF file of type %s", f.Type)
	}
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			return errors.New("the program is linked dynamically, and an image has no libraries for it: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// layer is the layer of the server: the same for every catalog.
func (s Server) layer() layers.Layer {
	return layers.Layer{Name: "server " + s.Platform.OS + "/" + s.Platform.Architecture, Entries: []layers.Entry{
		s.program,
		layers.Hardlink(probePath, serverPath, 0o755),
		layers.Bytes(nsswitchPath, 0o644, []byte(nsswitch)),
		layers.Dir("tmp", 0o777|fs.ModeSticky),
	}}
}
