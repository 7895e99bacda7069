package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/build/internal/serverbin"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
)

// Server is the program that serves a catalog image of one platform. Create it with [ServerFile].
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

// ServerFile returns the server in a file. It must be a static ELF program for the platform, and must not change until
// the image is built.
func ServerFile(path string, p v1.Platform) (Server, error) {
	program, err := cataloglayer.ProgramFile(path, p)
	return Server{Platform: p, program: program, sum: &programSum{}}, err
}

// serverStream is the server of size bytes that open returns, under the same conditions.
func serverStream(open func() (io.ReadCloser, error), size int64, p v1.Platform) (Server, error) {
	program, err := cataloglayer.Program(open, size, p)
	return Server{Platform: p, program: program, sum: &programSum{}}, err
}

// withDigest is the server whose program's sha256 is known, so that it need not be read to find the key of its layer. A
// layer with another program is not written.
func (s Server) withDigest(d digest.Digest) Server {
	s.program.Digest = d
	return s
}

// withLayer is the server whose layer was written before, so that it need not be compressed again. b is what
// [layers.Layer.Write] returned for the layer. There may be one for each compression.
func (s Server) withLayer(b layers.Blob, open func() (io.ReadCloser, error)) Server {
	s.finished = append(slices.Clip(s.finished), layers.Finished{Blob: b, Open: open})
	return s
}

// hashed is the server with the digest of its program.
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

func (s Server) layer() layers.Layer {
	l := cataloglayer.Server(s.program, s.Platform)
	l.Finished = s.finished
	return l
}

// Embedded finds the server programs embedded in this program. Each is looked up once. It is safe for concurrent use.
type Embedded struct {
	// Self, unless nil, allows the running program to be the server on its own platform if none is embedded: it must
	// serve when it is started under the name opm. The function is called when that is used.
	Self func()

	mu     sync.Mutex
	found  map[string]Server
	layers *serverLayers
}

// EmbeddedServers returns the platforms whose server is in the program, as os/arch, sorted.
func EmbeddedServers() []string { return serverbin.Embedded() }

// CacheLayers keeps the layers of servers, also of those in files, in a directory of the caller's for images with the
// same servers: each is compressed once. The directory must exist as long as images are built. It is called before the
// first image is built.
func (e *Embedded) CacheLayers(dir string) { e.layers = newServerLayers(dir) }

// The choices of [Options.SetServer].
const (
	ServerEmbedded = "embedded" // the server inside this program
	ServerBase     = "base"     // /bin/opm of the base image
	ServerNone     = "none"     // no server
)

// SetServer selects the server of all platforms: one of the values above, the static program in a file, or, if the
// choice is empty, the base's server if its configuration starts one, else the embedded server. A file is for one
// platform only. e must not be nil; &Embedded{} has no servers.
func (o *Options) SetServer(choice string, of []v1.Platform, e *Embedded) (err error) {
	o.severalPlatforms, o.Servers, o.serverOf, o.useBaseServer, o.serverLayers = of, nil, nil, false, e.layers
	switch {
	case choice == ServerBase:
		o.useBaseServer = true
	case choice == ServerNone:
	case choice == "" && o.Base != nil:
		o.serverOf = e.server
	case choice == "" || choice == ServerEmbedded:
		o.Servers, err = e.servers(of)
	case len(of) > 1:
		return &ServerError{Err: errors.New("--server is for an image of one platform")}
	default:
		var s Server
		s, err = ServerFile(choice, of[0])
		o.Servers = []Server{s}
	}
	return err
}

// server returns the server for a platform, for Options.serverOf. The error is a *[ServerError] if there is none.
func (e *Embedded) server(p v1.Platform) (Server, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := platform.Name(p)
	if s, ok := e.found[key]; ok {
		return s, nil
	}
	s, err := e.find(p)
	if err == nil {
		if e.found == nil {
			e.found = map[string]Server{}
		}
		e.found[key] = s
	}
	return s, err
}

func (e *Embedded) servers(of []v1.Platform) ([]Server, error) {
	var out []Server
	for _, p := range of {
		s, err := e.server(p)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (e *Embedded) find(p v1.Platform) (Server, error) {
	found, err := serverbin.Find(p.OS, p.Architecture)
	if err != nil {
		return Server{}, &ServerError{p, err}
	}
	if found.Self {
		if e.Self == nil {
			return Server{}, &ServerError{p,
				fmt.Errorf("%w for %s/%s: this program was built without it", ErrNoServer, p.OS, p.Architecture)}
		}
		e.Self()
		path, err := os.Executable()
		if err != nil {
			return Server{}, fmt.Errorf("find this program: %w", err)
		}
		return ServerFile(path, p)
	}
	l := found.Layer
	s, err := serverStream(found.Open, l.ProgramSize, p)
	if err != nil {
		return s, err
	}
	s = s.withDigest(l.Program).withLayer(embeddedLayer(l, layers.Gzip), found.OpenLayer)
	if found.Zstd != nil {
		s = s.withLayer(embeddedLayer(found.Zstd, layers.Zstd), found.OpenZstd)
	}
	return s, nil
}

func embeddedLayer(l *serverbin.Layer, c layers.Compression) layers.Blob {
	return layers.Blob{Digest: l.Digest, DiffID: l.DiffID, Size: l.Size, Uncompressed: l.Uncompressed, Compression: c}
}

// serverLayers caches the layers of servers for images with the same servers: each is compressed once. It is safe for
// concurrent use. The servers of a platform must be the same program in all builds that share it.
type serverLayers struct {
	store   *layers.Store
	written keyed.Memo[string, layers.Blob]
}

// newServerLayers stores the layers in a directory of the caller, which must exist as long as images are built.
func newServerLayers(dir string) *serverLayers {
	return &serverLayers{store: layers.NewStore(dir)}
}

// copyLayer copies the layer of a server into a store, so that images share no files.
func (s *serverLayers) copyLayer(ctx context.Context, l layers.Layer, o layers.Options,
	to *layers.Store) (layers.Blob, error) {
	b, err := s.layer(ctx, l, o)
	if err != nil || to.Has(b.Digest) {
		return b, err
	}
	if err := copyBlob(ctx, s.store.Path(b.Digest), to.Path(b.Digest)); err != nil {
		return b, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	return b, nil
}

// layer writes a layer once.
func (s *serverLayers) layer(ctx context.Context, l layers.Layer, o layers.Options) (layers.Blob, error) {
	key := fmt.Sprint(l.Name, " ", l.Size(), " ", o.Compression)
	return s.written.Get(ctx, key, func(ctx context.Context) (layers.Blob, error) { return s.store.Write(ctx, l, o) })
}

// copyBlob copies a complete blob to an unused name and syncs it.
func copyBlob(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, ctxio.Reader{Ctx: ctx, R: in}); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}

// server returns the program called opm that the base's configuration starts; empty if it starts another one or none.
func (b *base) server() string {
	for _, words := range [][]string{b.config.Config.Entrypoint, b.config.Config.Cmd} {
		if len(words) == 0 {
			continue
		}
		if path.Base(words[0]) == path.Base(cataloglayer.ServerPath) {
			return words[0]
		}
		return ""
	}
	return ""
}

// baseServer returns the common server of the bases of all platforms; empty if they differ or one has none.
func (o *Options) baseServer(bases []*base) string {
	if o.useBaseServer {
		return "/" + cataloglayer.ServerPath
	}
	found := ""
	for _, b := range bases {
		if b == nil {
			return ""
		}
		s := b.server()
		if s == "" || found != "" && s != found {
			return ""
		}
		found = s
	}
	return found
}

// settleServer decides between the base's server and servers that are added to the image. It returns the base's server
// if that is used.
func (o *Options) settleServer(bases []*base) (string, error) {
	if o.serverOf == nil && !o.useBaseServer {
		return "", nil
	}
	if s := o.baseServer(bases); s != "" {
		// Only the server that comes with it supports the native cache; others refuse to start with it.
		o.program, o.caches.Native = s, nil
		return s, nil
	}
	for _, p := range o.platforms() {
		s, err := o.serverOf(p)
		if err != nil {
			return "", err
		}
		if !platform.Equal(s.Platform, p) {
			return "", fmt.Errorf("a server for %s instead of %s", platform.Name(s.Platform), platform.Name(p))
		}
		o.Servers = append(o.Servers, s)
	}
	return "", nil
}
