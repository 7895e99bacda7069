package build

import (
	"fmt"
	"os"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/serverbin"
	"github.com/operator-bindery/bindery/layers"
)

// ErrNoServer is the error about a platform that this program has no server for.
var ErrNoServer = serverbin.ErrNoServer

// Embedded finds the server programs inside this one. Each is looked for once. It is safe for concurrent use.
type Embedded struct {
	// Self, unless nil, lets the running program serve on its own platform where no server is embedded: it must serve when it
	// is started under the name opm. The function is called when that happens.
	Self func()

	mu    sync.Mutex
	found map[string]Server
}

// Server is the server for a platform, for [Options.ServerOf]. The error is [ErrNoServer] where there is none.
func (e *Embedded) Server(p v1.Platform) (Server, error) {
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

// Servers are the servers for several platforms.
func (e *Embedded) Servers(of []v1.Platform) ([]Server, error) {
	var out []Server
	for _, p := range of {
		s, err := e.Server(p)
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
		return Server{}, err
	}
	if found.Self {
		if e.Self == nil {
			return Server{}, fmt.Errorf("%w for %s/%s: this program was built without it", ErrNoServer, p.OS, p.Architecture)
		}
		e.Self()
		path, err := os.Executable()
		if err != nil {
			return Server{}, fmt.Errorf("find this program: %w", err)
		}
		return ServerFile(path, p)
	}
	l := found.Layer
	s, err := ServerStream(found.Open, l.ProgramSize, p)
	if err != nil {
		return s, err
	}
	s = s.WithDigest(l.Program).WithLayer(embeddedLayer(l, layers.Gzip), found.OpenLayer)
	if found.Zstd != nil {
		s = s.WithLayer(embeddedLayer(found.Zstd, layers.Zstd), found.OpenZstd)
	}
	return s, nil
}

func embeddedLayer(l *serverbin.Layer, c layers.Compression) layers.Blob {
	return layers.Blob{Digest: l.Digest, DiffID: l.DiffID, Size: l.Size, Uncompressed: l.Uncompressed, Compression: c}
}
