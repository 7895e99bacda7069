// Package serverbin holds the small server programs, one per platform, that go into catalog images. They are embedded,
// compressed, when the program is built by "make build"; a program that was built without them offers itself for its own
// platform.
package serverbin

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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
	open func() (io.ReadCloser, error)
	size func() (int64, error)
	sum  func() ([]byte, error)
}

// Open returns the program's bytes. It can be called several times.
func (s Server) Open() (io.ReadCloser, error) { return s.open() }

// Size is the number of the program's bytes.
func (s Server) Size() (int64, error) { return s.size() }

// Digest is the sha256 of the program's bytes, if it was recorded when the program was compressed; else nil.
func (s Server) Digest() ([]byte, error) { return s.sum() }

// Find returns the server for a platform, such as linux and arm64. The error is [ErrNoServer] where there is none. It is
// safe for concurrent use.
func Find(goos, goarch string) (Server, error) {
	s := Server{OS: goos, Arch: goarch}
	name := "bin/opm-server-" + goos + "-" + goarch + ".zst"
	if _, err := fs.Stat(embedded, name); err == nil {
		s.open = func() (io.ReadCloser, error) { return openEmbedded(name) }
		s.size = func() (int64, error) { return sizeOfEmbedded(name) }
		s.sum = func() ([]byte, error) { return sumOfEmbedded(name) }
		return s, nil
	}
	if goos != "linux" || runtime.GOOS != "linux" || goarch != runtime.GOARCH {
		return Server{}, fmt.Errorf("%w for %s/%s: this program holds %s; build it with \"make build\" to have all", ErrNoServer, goos, goarch, held())
	}
	s.Self = true
	s.open, s.size = openSelf, sizeOfSelf
	s.sum = func() ([]byte, error) { return nil, nil }
	return s, nil
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

func openEmbedded(name string) (io.ReadCloser, error) {
	f, err := embedded.Open(name)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return readCloser{d.IOReadCloser(), f}, nil
}

// sizeOfEmbedded reads the size from the head of the frame, where the compressor has put it.
func sizeOfEmbedded(name string) (size int64, err error) {
	f, err := embedded.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(head[:n]); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if !h.HasFCS || h.FrameContentSize > math.MaxInt64 {
		return 0, fmt.Errorf("%s: its size is not known", name)
	}
	return int64(h.FrameContentSize), nil
}

// SumFrame is a frame that decompressors pass over (RFC 8878, section 3.1.2), with a sha256. The compressed programs end
// with that of the program.
func SumFrame(sum [sha256.Size]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x184D2A5B)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(sumMark)+len(sum)))
	return append(append(b, sumMark...), sum[:]...)
}

const sumMark = "sha256"

// sumOfEmbedded reads the digest from the end of the file.
func sumOfEmbedded(name string) (_ []byte, err error) {
	f, err := embedded.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var sum [sha256.Size]byte
	length := len(SumFrame(sum))
	at, ok := f.(io.ReaderAt)
	if !ok || info.Size() < int64(length) {
		return nil, nil
	}
	end := make([]byte, length)
	if _, err := at.ReadAt(end, info.Size()-int64(length)); err != nil {
		return nil, err
	}
	copy(sum[:], end[length-len(sum):])
	if !bytes.Equal(end, SumFrame(sum)) {
		return nil, nil
	}
	return sum[:], nil
}

func sizeOfSelf() (int64, error) {
	path, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	return info.Size(), nil
}

// readCloser closes a decompressor and what it reads from.
type readCloser struct {
	io.ReadCloser
	under io.Closer
}

func (r readCloser) Close() error { return errors.Join(r.ReadCloser.Close(), r.under.Close()) }

// openSelf opens the running program. It can only be a server in an image if it is static.
func openSelf() (io.ReadCloser, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open this program: %w", err)
	}
	static, err := isStatic(f)
	if err == nil && !static {
		err = fmt.Errorf("%s is linked dynamically and cannot run in an image: build it with CGO_ENABLED=0", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
