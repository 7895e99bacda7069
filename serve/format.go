package serve

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The layout of a cache file, described in docs/explain/caches.md. A change of any byte of it needs a new
// formatVersion.
//
//	header   fixed size, sha256 over itself
//	records  messages in wire form, each with a CRC-32C in the index
//	index    names, edges, APIs, sources, places of the records; sha256 in the header
const (
	formatMagic   = "BINDERY\x00"
	formatVersion = 1
	// encoderGeneration must be raised when the encoder writes other bytes for the same catalog in a form that readers
	// of this version accept: cached layers with older files are then rebuilt.
	encoderGeneration = 2
	headerSize        = 8 + 4 + 4 + 8 + 8 + 8 + sha256.Size + sha256.Size

	// Limits for values in a header, checked before anything else.
	maxIndexSize = 256 << 20
)

// CacheID identifies everything that a cache file depends on besides the catalog: the format and the encoder.
func CacheID() string { return fmt.Sprintf("native %d.%d", formatVersion, encoderGeneration) }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the position of a message in a cache file.
type record struct {
	offset uint64
	length uint32
	crc    uint32
}

// header is the first part of a cache file.
type header struct {
	fileSize    uint64
	indexOffset uint64
	indexLength uint64
	indexSum    [sha256.Size]byte
}

func (h *header) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, formatMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0) // reserved
	dst = binary.LittleEndian.AppendUint64(dst, h.fileSize)
	dst = binary.LittleEndian.AppendUint64(dst, h.indexOffset)
	dst = binary.LittleEndian.AppendUint64(dst, h.indexLength)
	dst = append(dst, h.indexSum[:]...)
	sum := sha256.Sum256(dst[start:])
	return append(dst, sum[:]...)
}

// parse decodes a header and checks it against the size of the file.
func (h *header) parse(b []byte, size int64) error {
	if len(b) < headerSize {
		return corrupt("%d bytes are less than a header", len(b))
	}
	if string(b[:8]) != formatMagic {
		return fmt.Errorf("%w: it does not begin with %q", ErrVersion, formatMagic)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return fmt.Errorf("%w: it is version %d, this program reads version %d", ErrVersion, v, formatVersion)
	}
	if sha256.Sum256(b[:headerSize-sha256.Size]) != [sha256.Size]byte(b[headerSize-sha256.Size:headerSize]) {
		return corrupt("the header's checksum does not match")
	}
	h.fileSize = binary.LittleEndian.Uint64(b[16:])
	h.indexOffset = binary.LittleEndian.Uint64(b[24:])
	h.indexLength = binary.LittleEndian.Uint64(b[32:])
	copy(h.indexSum[:], b[40:])
	switch {
	case h.fileSize != uint64(size):
		return corrupt("the file has %d bytes, its header says %d", size, h.fileSize)
	case h.indexOffset < headerSize || h.indexOffset > h.fileSize || h.indexLength != h.fileSize-h.indexOffset:
		return corrupt("the index is not where the header says")
	case h.indexLength > maxIndexSize:
		return corrupt("an index of %d bytes (limit %d)", h.indexLength, maxIndexSize)
	}
	return nil
}
