// Package serverbin has the small server programs for catalog images, one per platform. "make build" embeds them as
// finished gzip layers, and that of the program's own platform as a zstd layer too. A program built without them offers
// itself for its own platform.
package serverbin

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// ErrNoServer is returned for a platform without a server.
var ErrNoServer = errors.New("no server program")

// Server is the server program of one platform.
type Server struct {
	OS, Arch string
	// Self is true if the program offers itself in place of the small server.
	Self bool
	// Layer describes the embedded layer with the program; nil if Self is true.
	Layer *Layer
	// Zstd describes the same layer compressed with zstd; nil if it is not embedded.
	Zstd *Layer
	file string
}

// zstdPrefix precedes the name of a gzip layer in the name of the zstd layer.
const zstdPrefix = "zstd-"

// dir is the directory of the embedded files.
const dir = "bin/"

// Open returns the bytes of the embedded program. It can be called repeatedly.
func (s Server) Open() (io.ReadCloser, error) {
	r, err := s.OpenLayer()
	if err != nil {
		return nil, err
	}
	p, err := openProgram(r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.file, err), r.Close())
	}
	return p, nil
}

// OpenLayer returns the bytes of the embedded layer. It can be called repeatedly.
func (s Server) OpenLayer() (io.ReadCloser, error) { return openLayer(s.file, s.Layer) }

// OpenZstd works like [Server.OpenLayer] for the layer that Zstd describes.
func (s Server) OpenZstd() (io.ReadCloser, error) { return openLayer(zstdPrefix+s.file, s.Zstd) }

func openLayer(file string, l *Layer) (io.ReadCloser, error) {
	f, err := embedded.Open(dir + file)
	if err != nil {
		return nil, err
	}
	return readCloser{io.LimitReader(f, l.Size), f.Close}, nil
}

// Find returns the server for a platform, such as linux and arm64, or [ErrNoServer]. It is safe for concurrent use.
func Find(goos, goarch string) (Server, error) {
	s := Server{OS: goos, Arch: goarch}
	name := "opm-server-" + goos + "-" + goarch + ".layer"
	if _, err := fs.Stat(embedded, dir+name); err == nil {
		s.file = name
		if s.Layer, err = describe(name); err != nil {
			return Server{}, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := fs.Stat(embedded, dir+zstdPrefix+name); err == nil {
			s.Zstd, err = describe(zstdPrefix + name)
			if err == nil && (s.Zstd.Program != s.Layer.Program || s.Zstd.DiffID != s.Layer.DiffID) {
				err = errTrailer
			}
			if err != nil {
				return Server{}, fmt.Errorf("%s: %w", zstdPrefix+name, err)
			}
		}
		return s, nil
	}
	if goos != "linux" || runtime.GOOS != "linux" || goarch != runtime.GOARCH {
		return Server{}, fmt.Errorf("%w for %s/%s: this program has %s; build it with \"make build\" to have all",
			ErrNoServer, goos, goarch, held())
	}
	s.Self = true
	return s, nil
}

// Platforms returns the platforms with a server, as os/arch, sorted. The program itself counts as a server.
func Platforms() []string {
	out := Embedded()
	if self := runtime.GOOS + "/" + runtime.GOARCH; runtime.GOOS == "linux" && !slices.Contains(out, self) {
		out = append(out, self)
	}
	slices.Sort(out)
	return out
}

// Embedded returns the platforms whose small server is in the program, as os/arch, sorted.
func Embedded() []string {
	out := []string{}
	entries, err := fs.ReadDir(embedded, "bin")
	if err == nil {
		for _, e := range entries {
			if name, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".layer"), "opm-server-"); ok {
				out = append(out, strings.Replace(name, "-", "/", 1))
			}
		}
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

// describe reads the description of an embedded layer.
func describe(name string) (_ *Layer, err error) {
	f, err := embedded.Open(dir + name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errTrailer
	}
	return ReadTrailer(at, info.Size())
}

// readCloser reads from one reader and closes others.
type readCloser struct {
	io.Reader
	close func() error
}

func (r readCloser) Close() error { return r.close() }

// openProgram finds the program in its layer, which it closes.
func openProgram(layer io.ReadCloser) (io.ReadCloser, error) {
	z, err := gzip.NewReader(layer)
	if err != nil {
		return nil, err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && h.Name == ProgramName {
			return readCloser{r, func() error { return errors.Join(z.Close(), layer.Close()) }}, nil
		}
	}
}
