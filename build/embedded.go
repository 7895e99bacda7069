package build

import (
	"errors"
	"fmt"
	"os"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/serverbin"
	"github.com/operator-bindery/bindery/layers"
)

// ErrNoServer reports a platform without an embedded server.
var ErrNoServer = serverbin.ErrNoServer

// Embedded finds the server programs embedded in this program. Each is looked up once. It is safe for concurrent use.
type Embedded struct {
	// Self, unless nil, allows the running program to be the server on its own platform if none is embedded: it must
	// serve when it is started under the name opm. The function is called when that is used.
	Self func()

	mu    sync.Mutex
	found map[string]Server
}

// ServerError reports a server that cannot be added to the image.
type ServerError struct {
	Platform v1.Platform // zero if the error is about several
	Err      error
}

func (e *ServerError) Error() string { return e.Err.Error() }
func (e *ServerError) Unwrap() error { return e.Err }

// ErrorClass returns the usage class: another platform or server is needed.
func (*ServerError) ErrorClass() fault.Class { return fault.Usage }

// The choices of [Options.SetServer].
const (
	ServerEmbedded = "embedded" // the server inside this program
	ServerBase     = "base"     // /bin/opm of the base image
	ServerNone     = "none"     // no server
)

// SetServer selects the server of all platforms: one of the values above, the static program in a file, or, if the
// choice is empty, the base's server if its configuration starts one, else the embedded server. A file is for one
// platform only.
func (o *Options) SetServer(choice string, of []v1.Platform, e *Embedded) (err error) {
	o.Platforms, o.Servers, o.ServerOf, o.BaseServer = of, nil, nil, false
	switch {
	case choice == ServerBase:
		o.BaseServer = true
	case choice == ServerNone:
	case choice == "" && o.Base != nil:
		o.ServerOf = e.Server
	case choice == "" || choice == ServerEmbedded:
		o.Servers, err = e.Servers(of)
	case len(of) > 1:
		return &ServerError{Err: errors.New("--server is for an image of one platform")}
	default:
		var s Server
		s, err = ServerFile(choice, of[0])
		o.Servers = []Server{s}
	}
	return err
}

// Server returns the server for a platform, for [Options.ServerOf]. The error is a *[ServerError] if there is none.
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

// Servers returns the servers for several platforms.
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
		return Server{}, &ServerError{p, err}
	}
	if found.Self {
		if e.Self == nil {
			return Server{}, &ServerError{p, fmt.Errorf("%w for %s/%s: this program was built without it", ErrNoServer, p.OS, p.Architecture)}
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
