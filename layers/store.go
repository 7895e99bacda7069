package layers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/guard"
)

// Store is a directory of written layers, each a file named by the hexadecimal part of its sha256 digest. A file is
// complete and synced before it has that name. It is safe for concurrent use, also by several processes.
type Store struct {
	dir string
}

// NewStore returns a store in an existing directory.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Path returns the path of a blob, whether or not it is in the store.
func (s *Store) Path(d digest.Digest) string { return filepath.Join(s.dir, d.Encoded()) }

// Has reports whether the blob is in the store.
func (s *Store) Has(d digest.Digest) bool {
	info, err := os.Lstat(s.Path(d))
	return err == nil && info.Mode().IsRegular()
}

// Write writes the layer into the store. After an error nothing of it remains.
func (s *Store) Write(ctx context.Context, l Layer, o Options) (Blob, error) {
	c, err := newCodec(o.Compression)
	if err != nil {
		return Blob{}, err
	}
	return s.write(ctx, c, l, o)
}

func (s *Store) write(ctx context.Context, c codec, l Layer, o Options) (Blob, error) {
	d, err := s.draft(ctx, c, l, o)
	if err != nil {
		return Blob{}, err
	}
	return d.blob, s.seal(d)
}

// draft is a written layer that is not synced and not renamed yet.
type draft struct {
	f    *os.File
	blob Blob
}

// draft writes a layer to a temporary file.
func (s *Store) draft(ctx context.Context, c codec, l Layer, o Options) (_ draft, err error) {
	f, err := os.CreateTemp(s.dir, "layer-")
	if err != nil {
		return draft{}, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(f))
		}
	}()
	defer guard.Recover(&err)
	w := bufio.NewWriterSize(f, bufferSize)
	blob, err := write(ctx, w, c, l, o)
	if err != nil {
		return draft{}, err
	}
	if err := w.Flush(); err != nil {
		return draft{}, fmt.Errorf("layer %s: %w", l.Name, err)
	}
	return draft{f, blob}, nil
}

func (s *Store) seal(d draft) error {
	err := finish(d.f)
	if err == nil {
		err = os.Rename(d.f.Name(), s.Path(d.blob.Digest))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("layer %s: %w", d.blob.Name, err), discard(d.f))
	}
	return nil
}

func discard(f *os.File) error {
	return errors.Join(ignoreClosed(f.Close()), os.Remove(f.Name()))
}

// finish syncs a blob and makes it readable by all users: it will be hard-linked into an image layout.
func finish(f *os.File) error {
	if err := chmodReadable(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
