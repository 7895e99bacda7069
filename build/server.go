package build

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/layers"
)

// Server is the program that serves a catalog image of one platform. Create it with [ServerFile], [ServerStream] or
// [ServerBytes].
type Server struct {
	Platform v1.Platform
	program  layers.Entry
	sum      *programSum
	finished []layers.Finished
}

// programSum is the digest of a program, computed once: several images may share the server.
type programSum struct {
	mu  sync.Mutex
	sum digest.Digest
}

// hashed returns the server with the digest of its program.
func (s Server) hashed(ctx context.Context) (Server, error) {
	if s.program.Digest != "" || s.sum == nil {
		return s, nil
	}
	s.sum.mu.Lock()
	defer s.sum.mu.Unlock()
	if s.sum.sum == "" {
		e := []layers.Entry{s.program}
		if err := layers.HashEntries(ctx, e); err != nil {
			return s, fmt.Errorf("server: %w", err)
		}
		s.sum.sum = e[0].Digest
	}
	s.program.Digest = s.sum.sum
	return s, nil
}

// The names of the entries in the server layer.
const (
	serverPath   = "bin/opm"
	probePath    = "bin/grpc_health_probe"
	nsswitchPath = "etc/nsswitch.conf"
)

// nsswitch gives the hosts file precedence over DNS for C libraries that need a configuration.
const nsswitch = "hosts: files dns\n"

// ServerFile returns the program in a file. It must be a static ELF program for the platform, and must not change until
// the image is built.
func ServerFile(path string, p v1.Platform) (Server, error) {
	// Stat before opening: opening a FIFO waits for its writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return Server{}, fmt.Errorf("server: %s is not a regular file", path)
	}
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
	dir = cmp.Or(dir, ".")
	e, err := layers.File(serverPath, os.DirFS(dir), name)
	if err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	e.Mode = 0o755
	return Server{Platform: p, program: e, sum: &programSum{}}, nil
}

// ServerBytes returns the program in memory, under the same conditions.
func ServerBytes(program []byte, p v1.Platform) (Server, error) {
	return ServerStream(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(program)), nil }, int64(len(program)), p)
}

// ServerStream returns the program of size bytes that open opens, under the same conditions. open is called now, to
// check the start of the program, and again when the layer is written: the program is never completely in memory.
func ServerStream(open func() (io.ReadCloser, error), size int64, p v1.Platform) (Server, error) {
	head, err := readHead(open, size)
	if err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	if err := checkProgram(bytes.NewReader(head), size, p); err != nil {
		return Server{}, fmt.Errorf("server: %w", err)
	}
	return Server{Platform: p, program: layers.Entry{Name: serverPath, Mode: 0o755, Size: size, Open: open}, sum: &programSum{}}, nil
}

// WithDigest returns the server with the known sha256 of its program, so that it need not be read to compute the key of
// its layer. Writing the layer fails if the program differs.
func (s Server) WithDigest(d digest.Digest) Server {
	s.program.Digest = d
	return s
}

// WithLayer returns the server with its finished layer, so that it need not be compressed again. b is the result of
// [layers.Write] for the layer of [ServerLayer]. There may be one for each compression.
func (s Server) WithLayer(b layers.Blob, open func() (io.ReadCloser, error)) Server {
	s.finished = append(slices.Clip(s.finished), layers.Finished{Blob: b, Open: open})
	return s
}

// headSize is enough of a program for its ELF header and the program headers, which linkers put after it.
const headSize = 4096

// readHead reads the start of a program. It clears the fields of its ELF header that refer to the section headers,
// which are at the end of the program.
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
			return errors.New("the program is linked dynamically, and an image has no libraries for it: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// layer returns the layer of the server: the same for every catalog.
func (s Server) layer() layers.Layer {
	name := "server " + s.Platform.OS + "/" + s.Platform.Architecture
	return layers.Layer{Name: name, Finished: s.finished, Entries: []layers.Entry{
		s.program,
		layers.Hardlink(probePath, serverPath, 0o755),
		layers.Bytes(nsswitchPath, 0o644, []byte(nsswitch)),
		layers.Dir("tmp", 0o777|fs.ModeSticky),
	}}
}
