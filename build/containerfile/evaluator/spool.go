//go:build !nobuildah

package evaluator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// fileSpool stores the bytes of files from images, archives and downloads in one temporary file. It is safe for
// concurrent use.
type fileSpool struct {
	dir string

	mu sync.Mutex // held while a file is appended
	s  *spool.Spool
}

func newSpool(dir string) *fileSpool { return &fileSpool{dir: dir, s: spool.New(dir, 0)} }

// add appends exactly size bytes.
func (s *fileSpool) add(ctx context.Context, r io.Reader, size int64) (content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := digest.SHA256.Digester()
	at, err := s.s.AppendFrom(ctx, io.TeeReader(io.LimitReader(r, size+1), sum.Hash()))
	switch {
	case err != nil:
		return nil, err
	case at.Len != size:
		return nil, fmt.Errorf("%w: %d bytes instead of %d", layers.ErrChanged, at.Len, size)
	}
	return spooled{s.s, at, sum.Digest()}, nil
}

func (s *fileSpool) close() error { return s.s.Close() }

// spooled is the content of a file in the spool.
type spooled struct {
	s   *spool.Spool
	at  spool.Span
	sum digest.Digest
}

// id is the digest of the bytes: the same archive unpacked for several platforms gives one layer.
func (p spooled) id() string { return p.sum.String() }

func (p spooled) open() (io.ReadCloser, error) { return io.NopCloser(p.s.Open(p.at)), nil }

// inline is the content of a file in memory.
type inline []byte

func (b inline) id() string { return digest.FromBytes(b).String() }

func (b inline) open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

// addAll appends up to limit bytes.
func (s *fileSpool) addAll(ctx context.Context, r io.Reader, limit int64) (_ content, _ int64, err error) {
	// A download takes time and goes to its own file first, so that others can append to the spool.
	download := spool.New(s.dir, 0)
	defer func() { err = errors.Join(err, download.Close()) }()
	all, err := download.AppendFrom(ctx, io.LimitReader(r, limit+1))
	if err == nil && all.Len > limit {
		err = fmt.Errorf("%w: more than %d bytes", errLimit, limit)
	}
	if err != nil {
		return nil, 0, err
	}
	c, err := s.add(ctx, download.Open(all), all.Len)
	return c, all.Len, err
}
