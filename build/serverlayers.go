package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/layers"
)

// serverLayers caches the layers of servers for images with the same servers: each is compressed once. It is safe for
// concurrent use. The servers of a platform must be the same program in all builds that share it.
type serverLayers struct {
	store *layers.Store

	mu      sync.Mutex
	written map[string]layers.Blob
}

// newServerLayers stores the layers in a directory of the caller, which must exist as long as images are built.
func newServerLayers(dir string) *serverLayers {
	return &serverLayers{store: layers.NewStore(dir), written: map[string]layers.Blob{}}
}

// put copies the layer of a server into a store, so that images share no files.
func (s *serverLayers) put(ctx context.Context, l layers.Layer, o layers.Options,
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
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(l.Name, " ", l.Size(), " ", o.Compression)
	if b, ok := s.written[key]; ok {
		return b, nil
	}
	b, err := s.store.Write(ctx, l, o)
	if err == nil {
		s.written[key] = b
	}
	return b, err
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
