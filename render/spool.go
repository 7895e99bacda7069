package render

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/spool"
)

// spoolMemory is how many bytes of finished blobs are held in memory until their turn. The rest goes to a temporary
// file.
const spoolMemory = 32 << 20

// blobSpool stores blobs that were rendered before their turn, so that memory does not grow with the number of
// references. It is safe for concurrent use.
type blobSpool struct {
	mu   sync.Mutex
	held int64 // bytes of blobs in memory
	s    *spool.Spool
}

// spooled is a blob in a spool: either the blob itself, or a span of JSON with its sort key.
type spooled struct {
	blob declcfg.Blob
	at   spool.Span
}

func newSpool(dir string) *blobSpool { return &blobSpool{s: spool.New(dir, 0)} }

// store stores a bundle, which must not be changed afterwards.
func (s *blobSpool) store(b *declcfg.Bundle) (spooled, error) {
	size := int64(0)
	for _, p := range b.Properties {
		size += int64(len(p.Value))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+size <= spoolMemory {
		s.held += size
		return spooled{blob: b}, nil
	}
	at, err := s.s.Append(declcfg.AppendJSON(nil, b, false))
	if err != nil {
		return spooled{}, fmt.Errorf("buffer the rendered blobs: %w", err)
	}
	return spooled{blob: &declcfg.Bundle{Name: b.Name, Package: b.Package}, at: at}, nil
}

func (s *blobSpool) get(k spooled) (declcfg.Blob, error) {
	if k.at.Len == 0 {
		return k.blob, nil
	}
	text := make([]byte, k.at.Len)
	if _, err := s.s.ReadAt(text, k.at.At); err != nil {
		return nil, err
	}
	m := declcfg.Meta{Schema: declcfg.SchemaBundle, Package: k.blob.BlobPackage(), Name: k.blob.BlobName(),
		Blob: json.RawMessage(text)}
	return m.Parse()
}

// close frees memory and removes the file.
func (s *blobSpool) close() error { return s.s.Close() }
