package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// spoolMemory is how many bytes of finished blobs wait in memory for their turn. What is more waits in a temporary file.
const spoolMemory = 32 << 20

// spool holds blobs that have been rendered before it is their turn, so that memory does not grow with the number of
// references. It is safe for concurrent use.
type spool struct {
	dir string

	mu   sync.Mutex
	held int64
	file *atomicfs.Scratch
	size int64
}

// kept is a blob in a spool: in memory, or a span of the file, of which only what the order needs is in memory.
type kept struct {
	blob     declcfg.Blob
	off, len int64
}

// put takes a bundle. It must not be changed afterwards.
func (s *spool) put(b *declcfg.Bundle) (kept, error) {
	size := int64(0)
	for _, p := range b.Properties {
		size += int64(len(p.Value))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+size <= spoolMemory {
		s.held += size
		return kept{blob: b}, nil
	}
	if s.file == nil {
		f, err := atomicfs.NewScratch(s.dir, "bindery-render-*")
		if err != nil {
			return kept{}, fmt.Errorf("hold back what is rendered already: %w", err)
		}
		s.file = f
	}
	text := declcfg.AppendJSON(nil, b, false)
	if _, err := s.file.WriteAt(text, s.size); err != nil {
		return kept{}, fmt.Errorf("hold back what is rendered already: %w", err)
	}
	k := kept{blob: &declcfg.Bundle{Name: b.Name, Package: b.Package}, off: s.size, len: int64(len(text))}
	s.size += k.len
	return k, nil
}

// get returns a blob that was put.
func (s *spool) get(k kept) (declcfg.Blob, error) {
	if k.len == 0 {
		return k.blob, nil
	}
	text := make([]byte, k.len)
	s.mu.Lock()
	_, err := s.file.ReadAt(text, k.off)
	s.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return declcfg.Parse(&declcfg.Meta{Schema: declcfg.SchemaBundle, Package: k.blob.BlobPackage(), Name: k.blob.BlobName(), Blob: json.RawMessage(text)})
}

// close gives memory and file back.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
