package serve

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// spill stores the encoded manifests of bundles while the other blobs of their packages are read, so that a package
// with large manifests is never completely in memory: all but a little goes to an unnamed temporary file. It is not
// safe for concurrent use.
type spill struct {
	log *slog.Logger

	*spillBuffers                   // nil until something is stored
	file          *atomicfs.Scratch // nil until memory is full
	size          int64             // of the file's content
	full          bool              // no file can be created: all stays in memory
}

// spillMemory is how many bytes are held in memory.
const spillMemory = 1 << 20

// spillBuffers is memory that one spill after another reuses.
type spillBuffers struct {
	memory           []byte // spilled manifests
	message, objects []byte // of the bundle being encoded
}

var spillPool = sync.Pool{New: func() any { return &spillBuffers{memory: make([]byte, 0, spillMemory)} }}

func (s *spill) open() {
	if s.spillBuffers == nil {
		s.spillBuffers = spillPool.Get().(*spillBuffers)
	}
}

// spilled are the manifests of one bundle in the form of api.Bundle.
type spilled struct {
	from   io.ReaderAt
	offset int64
	length int
	crc    uint32
	hasCSV bool
	err    error // why they cannot be encoded
}

// takeManifests encodes the manifests of a bundle and drops them from it. It returns nil for a bundle without
// manifests.
func (s *spill) takeManifests(b *declcfg.Bundle) *spilled {
	if !b.HasObjects {
		return nil
	}
	objects, csv, err := b.Manifests()
	b.DropObjects()
	if err != nil {
		return &spilled{err: err}
	}
	s.open()
	s.message = appendManifests(s.message[:0], csv, objects)
	return s.storeMessage(s.message, csv != nil)
}

// takeRead is like takeManifests, for a bundle that the reader has just returned and that is not yet validated.
func (s *spill) takeRead(r *declcfg.Reader, b *declcfg.Bundle) (*spilled, error) {
	if !b.HasObjects {
		return nil, nil
	}
	s.open()
	hasCSV := false
	s.message, s.objects = s.message[:0], s.objects[:0]
	err := r.Manifests(b, func(object []byte, csv bool) {
		if csv {
			hasCSV = true
			s.message = appendMessage(s.message, bundleCSVJSON, object)
		}
		s.objects = appendMessage(s.objects, bundleObject, object)
	})
	if err != nil {
		return nil, err
	}
	b.DropObjects()
	s.message = append(s.message, s.objects...)
	return s.storeMessage(s.message, hasCSV), nil
}

// storeMessage copies a message to memory or the file.
func (s *spill) storeMessage(message []byte, hasCSV bool) *spilled {
	out := &spilled{length: len(message), crc: crc32.Checksum(message, castagnoli), hasCSV: hasCSV}
	if s.file == nil && !s.full && len(s.memory)+len(message) > spillMemory {
		f, err := atomicfs.NewScratch("", ".bindery-serve-*")
		if err != nil {
			s.log.Warn("no temporary file can be made: manifests are kept in memory until their package is complete",
				"error", err)
			s.full = true
		}
		s.file = f
	}
	if s.file != nil {
		_, err := s.file.WriteAt(message, s.size)
		if err == nil {
			out.from, out.offset = s.file, s.size
			s.size += int64(len(message))
			return out
		}
		if !s.full {
			s.log.Warn("manifests are kept in memory until their package is complete", "error",
				fmt.Errorf("write temporary file: %w", err))
			s.full = true
		}
	}
	if s.file == nil && !s.full {
		start := len(s.memory)
		s.memory = append(s.memory, message...)
		message = s.memory[start:]
	} else {
		message = bytes.Clone(message)
	}
	out.from = bytes.NewReader(message)
	return out
}

// close releases everything. Spilled manifests cannot be read afterwards.
func (s *spill) close() error {
	if s.spillBuffers != nil {
		s.memory = s.memory[:0]
		spillPool.Put(s.spillBuffers)
		s.spillBuffers = nil
	}
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.size = nil, 0
	return f.Close()
}

// read reads the manifests into a buffer of their length and verifies them.
func (m *spilled) read(buf []byte) error {
	if n, err := m.from.ReadAt(buf, m.offset); n != len(buf) {
		return fmt.Errorf("read temporary file: %w", err)
	}
	if crc32.Checksum(buf, castagnoli) != m.crc {
		return errors.New("read temporary file: its content has changed")
	}
	return nil
}

// manifests are the spilled manifests of a package by bundle name.
type manifests map[string]*spilled

// add stores what [spill.takeManifests] or [spill.takeRead] has returned for a bundle. If two bundles have the same
// name, which is invalid, the manifests of one stay.
func (m manifests) add(b *declcfg.Bundle, taken *spilled) {
	if taken != nil {
		m[b.Name] = taken
	}
}

// encoded is a cache file with the findings to report about it. Manifests may still be in the spill, which must stay
// open until the file is written.
type encoded struct {
	name   string
	large  []LargeBundle
	memory []byte // the file without the spilled manifests
	cuts   []cut  // in the order of the file
	absent int64  // bytes of all cuts
}

// cut is a position in memory at which spilled manifests are inserted.
type cut struct {
	at int
	*spilled
}

func (e *encoded) size() int64 { return int64(len(e.memory)) + e.absent }

// cut appends spilled manifests to the file.
func (e *encoded) cut(m *spilled) {
	e.cuts = append(e.cuts, cut{len(e.memory), m})
	e.absent += int64(m.length)
}

// WriteTo writes the file.
func (e *encoded) WriteTo(w io.Writer) (n int64, err error) {
	write := func(b []byte) error {
		written, err := w.Write(b)
		n += int64(written)
		return err
	}
	at := 0
	var buf []byte
	for _, c := range e.cuts {
		if c.at > at {
			if err := write(e.memory[at:c.at]); err != nil {
				return n, err
			}
			at = c.at
		}
		buf = slices.Grow(buf[:0], c.length)[:c.length]
		if err := c.read(buf); err != nil {
			return n, err
		}
		if err := write(buf); err != nil {
			return n, err
		}
	}
	return n, write(e.memory[at:])
}

// bytes returns the whole file.
func (e *encoded) bytes() ([]byte, error) {
	if len(e.cuts) == 0 {
		return e.memory, nil
	}
	var b bytes.Buffer
	b.Grow(int(e.size()))
	_, err := e.WriteTo(&b)
	return b.Bytes(), err
}
