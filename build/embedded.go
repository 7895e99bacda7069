package build

import (
	"errors"
	"fmt"
	"os"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/layers"
	"github.com/operator-bindery/bindery/internal/serverbin"
)

// Embedded finds the server programs embedded in this program. Each is looked up once. It is safe for concurrent use.
type Embedded struct {
	// Self, unless nil, allows the running program to be the server on its own platform if none is embedded: it must
	// serve when it is started under the name opm. The function is called when that is used.
	Self func()

	mu     sync.Mutex
	found  map[string]Server
	layers *serverLayers
}

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
	key := p.OS + "/" + p.Architecture + "/" + p.Variant
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

// servers returns the servers for several platforms.
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
