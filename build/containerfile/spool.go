//go:build !nobuildah

package containerfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/layers"
)

// spool has the bytes of files that lie nowhere by themselves: out of images, archives and downloads. It is one temporary file,
// made when it is needed.
type spool struct {
	dir string

	mu   sync.Mutex
	f    *os.File
	size int64
}

// add takes exactly size bytes.
func (s *spool) add(ctx context.Context, r io.Reader, size int64) (content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		f, err := os.CreateTemp(s.dir, "files-")
		if err != nil {
			return nil, err
		}
		s.f = f
	}
	at := s.size
	sum := digest.SHA256.Digester()
	n, err := ctxio.Copy(io.MultiWriter(io.NewOffsetWriter(s.f, at), sum.Hash()), io.LimitReader(ctxio.Reader{Ctx: ctx, R: r}, size+1))
	switch {
	case err != nil:
		return nil, err
	case n != size:
		return nil, fmt.Errorf("%w: %d bytes, and there should be %d", layers.ErrChanged, n, size)
	}
	s.size += n
	return spooled{s, at, n, sum.Digest()}, nil
}

func (s *spool) close() error {
	if s.f == nil {
		return nil
	}
	return errors.Join(s.f.Close(), os.Remove(s.f.Name()))
}

// spooled is a piece of a spool.
type spooled struct {
	s     *spool
	at, n int64
	sum   digest.Digest
}

// id is that of the bytes: layers of several platforms that unpack the same archive are one.
func (p spooled) id() string { return p.sum.String() }

func (p spooled) open() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(p.s.f, p.at, p.n)), nil
}

// inline is the content of a file in memory.
type inline []byte

func (b inline) id() string { return digest.FromBytes(b).String() }

func (b inline) open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

// addAll takes up to limit bytes.
func (s *spool) addAll(ctx context.Context, r io.Reader, limit int64) (content, int64, error) {
	f, err := os.CreateTemp(s.dir, "download-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	n, err := ctxio.Copy(f, io.LimitReader(ctxio.Reader{Ctx: ctx, R: r}, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: more than %d bytes", errLimit, limit)
	}
	if err != nil {
		return nil, 0, err
	}
	c, err := s.add(ctx, io.NewSectionReader(f, 0, n), n)
	return c, n, err
}
