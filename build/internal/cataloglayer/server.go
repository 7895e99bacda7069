package cataloglayer

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/layers"
)

// The names of the entries of the server layer.
const (
	ServerPath   = "bin/opm"
	ProbePath    = "bin/grpc_health_probe"
	NsswitchPath = "etc/nsswitch.conf"
)

// nsswitch gives the hosts file precedence over DNS for C libraries that need a configuration.
const nsswitch = "hosts: files dns\n"

// Server is the layer of a server program: the same for every catalog.
func Server(program layers.Entry, p v1.Platform) layers.Layer {
	return layers.Layer{Name: "server " + p.OS + "/" + p.Architecture, Entries: []layers.Entry{
		program,
		layers.Hardlink(ProbePath, ServerPath, 0o755),
		layers.Bytes(NsswitchPath, 0o644, []byte(nsswitch)),
		layers.Dir("tmp", 0o777|fs.ModeSticky),
	}}
}

// ProgramFile is the server program in a file. It must be a static ELF program for the platform, and must not change
// until its layer is written.
func ProgramFile(path string, p v1.Platform) (layers.Entry, error) {
	f, err := regularfile.OpenSeekable(path)
	if err != nil {
		return layers.Entry{}, fmt.Errorf("server: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return layers.Entry{}, fmt.Errorf("server: %w", err)
	}
	if err := checkProgram(f, info.Size(), p); err != nil {
		return layers.Entry{}, fmt.Errorf("server: %s: %w", path, err)
	}
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	e, err := layers.File(ServerPath, os.DirFS(dir), name)
	if err != nil {
		return layers.Entry{}, fmt.Errorf("server: %w", err)
	}
	e.Mode = 0o755
	return e, nil
}

// Program is the server program of size bytes that open returns, under the same conditions. open is called now, for the
// head of the program, and again when the layer is written: the program is never in memory as a whole.
func Program(open func() (io.ReadCloser, error), size int64, p v1.Platform) (layers.Entry, error) {
	head, err := readHead(open, size)
	if err != nil {
		return layers.Entry{}, fmt.Errorf("server: %w", err)
	}
	if err := checkProgram(bytes.NewReader(head), size, p); err != nil {
		return layers.Entry{}, fmt.Errorf("server: %w", err)
	}
	return layers.Entry{Name: ServerPath, Mode: 0o755, Size: size, Open: open}, nil
}

// headSize is enough of a program for its ELF header and its program headers, which linkers put behind it.
const headSize = 4096

// readHead is the beginning of a program. Of its ELF header it blanks what points to the section headers, which are at
// the program's other end.
func readHead(open func() (io.ReadCloser, error), size int64) (_ []byte, err error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head := make([]byte, min(size, headSize))
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if len(head) >= binary.Size(elf.Header64{}) {
		const shoff, shentsize = 0x28, 0x3a // e_shoff; e_shentsize, e_shnum and e_shstrndx
		clear(head[shoff : shoff+8])
		clear(head[shentsize : shentsize+6])
	}
	return head, nil
}

// machines are the supported architectures of servers.
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

// checkProgram refuses a program that cannot run on the platform in an image without other files.
func checkProgram(r io.ReaderAt, size int64, p v1.Platform) error {
	want, known := machines[p.Architecture]
	if p.OS != "linux" || !known {
		return fmt.Errorf("no server is available for %s/%s", p.OS, p.Architecture)
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
			return errors.New(
				"the program is linked dynamically, and an image has no libraries for it: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
