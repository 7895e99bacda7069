package build

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/internal/layers"
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
// [layers.Write] returned for the layer. There may be one for each compression.
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

// layer is the layer of the server.
func (s Server) layer() layers.Layer {
	l := cataloglayer.Server(s.program, s.Platform)
	l.Finished = s.finished
	return l
}
