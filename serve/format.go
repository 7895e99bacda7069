package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"slices"
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

// index is the part of a package that is kept in memory: all keys of questions, and the positions of the answers.
type index struct {
	name           string
	hasPackage     bool // false if the file has only custom blobs of a package without an olm.package blob
	defaultChannel string
	pkg            record // api.Package
	sources        []SourceFile
	bundles        []indexBundle  // sorted by name
	channels       []indexChannel // sorted by name
	gvks           []indexGVK     // sorted
	customs        []indexCustom  // in the catalog's order
}

// SourceFile is one file of a file-based catalog from which blobs of a package were read. Name is slash-separated and
// relative to the catalog's root.
type SourceFile struct {
	Name   string
	Size   int64
	Digest [sha256.Size]byte
	// Packages is the number of packages that have blobs in the file, counting blobs of no package as one more. A
	// missing cache file of another package is detected by it.
	Packages int
}

type indexBundle struct {
	name     string
	hasImage bool
	light    record // the api.Bundle without the channel's fields and those in heavy
	heavy    record // csvJson and object
}

type indexChannel struct {
	name    string
	head    int          // position in entries
	entries []indexEntry // sorted by name
}

type indexEntry struct {
	bundle    int // position in index.bundles
	skipRange string
	replaces  string
	skips     []string
}

// indexGVK is an API with the bundles that provide it, as ascending positions in index.bundles.
type indexGVK struct {
	gvk
	bundles []int
}

type indexCustom struct {
	schema string
	record record
}

// records returns the positions of all records in the order of the file.
func (x *index) records() iter.Seq[record] {
	return func(yield func(record) bool) {
		if !yield(x.pkg) {
			return
		}
		for i := range x.bundles {
			if !yield(x.bundles[i].light) {
				return
			}
		}
		for i := range x.bundles {
			if !yield(x.bundles[i].heavy) {
				return
			}
		}
		for i := range x.customs {
			if !yield(x.customs[i].record) {
				return
			}
		}
	}
}

// channel returns the channel with a name, or nil.
func (x *index) channel(name string) *indexChannel {
	i, ok := slices.BinarySearchFunc(x.channels, name, func(c indexChannel, name string) int {
		return cmp.Compare(c.name, name)
	})
	if !ok {
		return nil
	}
	return &x.channels[i]
}

// entryName returns the name of an entry, which is that of its bundle.
func (x *index) entryName(e *indexEntry) string { return x.bundles[e.bundle].name }

// entry returns the entry with a name in a channel, or nil.
func (x *index) entry(c *indexChannel, name string) *indexEntry {
	i, ok := slices.BinarySearchFunc(c.entries, name, func(e indexEntry, name string) int {
		return cmp.Compare(x.bundles[e.bundle].name, name)
	})
	if !ok {
		return nil
	}
	return &c.entries[i]
}

// providers returns the positions of the bundles that provide an API, ascending.
func (x *index) providers(k gvk) []int {
	i, ok := slices.BinarySearchFunc(x.gvks, k, func(a indexGVK, k gvk) int { return a.gvk.compare(k) })
	if !ok {
		return nil
	}
	return x.gvks[i].bundles
}

// The index is encoded as unsigned varints and strings (a varint length, then the bytes). Every count precedes the
// counted items. Positions must be in range and names in strictly ascending order; readers refuse anything else, so
// that a catalog has one encoding and searches can rely on the order.

type indexWriter struct{ b []byte }

func (w *indexWriter) uint(n uint64)   { w.b = binary.AppendUvarint(w.b, n) }
func (w *indexWriter) count(n int)     { w.uint(uint64(n)) }
func (w *indexWriter) string(s string) { w.count(len(s)); w.b = append(w.b, s...) }
func (w *indexWriter) bool(v bool) {
	if v {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

func (w *indexWriter) record(r record) {
	w.uint(r.offset)
	w.uint(uint64(r.length))
	w.b = binary.LittleEndian.AppendUint32(w.b, r.crc)
}

// encode returns the index as stored in a cache file.
func (x *index) encode() []byte {
	w := &indexWriter{}
	w.string(x.name)
	w.bool(x.hasPackage)
	w.string(x.defaultChannel)
	w.record(x.pkg)
	w.count(len(x.sources))
	for _, s := range x.sources {
		w.string(s.Name)
		w.uint(uint64(s.Size))
		w.b = append(w.b, s.Digest[:]...)
		w.count(s.Packages)
	}
	w.count(len(x.bundles))
	for i := range x.bundles {
		b := &x.bundles[i]
		w.string(b.name)
		w.bool(b.hasImage)
		w.record(b.light)
		w.record(b.heavy)
	}
	w.count(len(x.channels))
	for i := range x.channels {
		c := &x.channels[i]
		w.string(c.name)
		w.count(c.head)
		w.count(len(c.entries))
		for _, e := range c.entries {
			w.count(e.bundle)
			w.string(e.skipRange)
			w.string(e.replaces)
			w.count(len(e.skips))
			for _, s := range e.skips {
				w.string(s)
			}
		}
	}
	w.count(len(x.gvks))
	for _, k := range x.gvks {
		w.string(k.group)
		w.string(k.version)
		w.string(k.kind)
		w.count(len(k.bundles))
		for _, b := range k.bundles {
			w.count(b)
		}
	}
	w.count(len(x.customs))
	for _, c := range x.customs {
		w.string(c.schema)
		w.record(c.record)
	}
	return w.b
}

// indexReader decodes an index. The first error is kept in err; everything after it reads as zero.
type indexReader struct {
	s       string // the whole index: decoded strings are substrings, without copies
	pos     int
	records uint64 // the offset at which the records end
	err     error
}

func (r *indexReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = corrupt("index: "+format, args...)
		r.pos = len(r.s)
	}
}

func (r *indexReader) uint() uint64 {
	var n uint64
	for shift := 0; ; shift += 7 {
		if r.pos >= len(r.s) {
			r.fail("it ends in a number")
			return 0
		}
		c := r.s[r.pos]
		r.pos++
		if shift == 63 && c > 1 {
			r.fail("a number is too large")
			return 0
		}
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if c == 0 && shift > 0 {
				r.fail("a number is not in its shortest form")
				return 0
			}
			return n
		}
	}
}

// count reads the number of items that take at least size bytes each, so that a wrong count cannot allocate more than a
// few times the file's size.
func (r *indexReader) count(size int) int {
	n := r.uint()
	if n > uint64((len(r.s)-r.pos)/size) {
		r.fail("a count of %d is more than the file can hold", n)
		return 0
	}
	return int(n)
}

// position reads a position in a list of n.
func (r *indexReader) position(n int) int {
	p := r.uint()
	if r.err == nil && p >= uint64(n) {
		r.fail("a position of %d in a list of %d", p, n)
		return 0
	}
	return int(p)
}

func (r *indexReader) bytes(n int) string {
	if n > len(r.s)-r.pos {
		r.fail("it ends in a value")
		return ""
	}
	s := r.s[r.pos : r.pos+n]
	r.pos += n
	return s
}

func (r *indexReader) string() string { return r.bytes(r.count(1)) }

func (r *indexReader) bool() bool {
	n := r.uint()
	if n > 1 {
		r.fail("a flag of %d", n)
	}
	return n == 1
}

func (r *indexReader) record() record {
	rec := record{offset: r.uint()}
	length := r.uint()
	if crc := r.bytes(4); len(crc) == 4 {
		rec.crc = uint32(crc[0]) | uint32(crc[1])<<8 | uint32(crc[2])<<16 | uint32(crc[3])<<24
	}
	if r.err == nil && (rec.offset < headerSize || rec.offset > r.records || length > r.records-rec.offset ||
		length > 1<<31) {
		r.fail("a record lies outside the file")
		return record{}
	}
	rec.length = uint32(length)
	return rec
}

// decodeIndex decodes an index and validates its structure. records is the offset at which the records end.
func decodeIndex(b []byte, records uint64) (*index, error) {
	r := &indexReader{s: string(b), records: records}
	x := &index{name: r.string(), hasPackage: r.bool(), defaultChannel: r.string(), pkg: r.record()}
	r.sources(x)
	r.bundles(x)
	r.channels(x)
	r.gvks(x)
	x.customs = make([]indexCustom, r.count(7))
	for i := range x.customs {
		x.customs[i] = indexCustom{schema: r.string(), record: r.record()}
	}
	if r.err == nil && r.pos != len(r.s) {
		r.fail("%d bytes after its end", len(r.s)-r.pos)
	}
	if !x.hasPackage && (x.defaultChannel != "" || x.pkg.length > 0 || len(x.bundles)+len(x.channels)+len(x.gvks) > 0) {
		r.fail("parts of a package that is not there")
	}
	r.checkPlaces(x)
	if r.err != nil {
		return nil, r.err
	}
	return x, nil
}

// checkPlaces checks that the records are contiguous, so that every byte of the file is covered by a checksum.
func (r *indexReader) checkPlaces(x *index) {
	next := uint64(headerSize)
	for rec := range x.records() {
		if rec.offset != next {
			r.fail("a record at %d should be at %d", rec.offset, next)
			return
		}
		next += uint64(rec.length)
	}
	if next != r.records {
		r.fail("the records end at %d and not at %d", next, r.records)
	}
}

func (r *indexReader) sources(x *index) {
	x.sources = make([]SourceFile, r.count(3+sha256.Size))
	for i := range x.sources {
		s := SourceFile{Name: r.string(), Size: int64(r.uint())}
		copy(s.Digest[:], r.bytes(sha256.Size))
		packages := r.uint()
		s.Packages = int(packages)
		if s.Size < 0 || packages == 0 || packages > math.MaxInt32 || i > 0 && x.sources[i-1].Name >= s.Name {
			r.fail("sources are out of order")
		}
		x.sources[i] = s
	}
}

func (r *indexReader) bundles(x *index) {
	x.bundles = make([]indexBundle, r.count(14))
	for i := range x.bundles {
		x.bundles[i] = indexBundle{name: r.string(), hasImage: r.bool(), light: r.record(), heavy: r.record()}
		if i > 0 && x.bundles[i-1].name >= x.bundles[i].name {
			r.fail("bundles are out of order")
		}
		if r.err != nil {
			return
		}
	}
}

func (r *indexReader) channels(x *index) {
	x.channels = make([]indexChannel, r.count(3))
	for i := range x.channels {
		c := indexChannel{name: r.string()}
		head := r.uint()
		c.entries = make([]indexEntry, r.count(4))
		for j := range c.entries {
			e := indexEntry{bundle: r.position(len(x.bundles)), skipRange: r.string(), replaces: r.string()}
			if n := r.count(1); n > 0 {
				e.skips = make([]string, n)
				for k := range e.skips {
					e.skips[k] = r.string()
				}
			}
			if j > 0 && c.entries[j-1].bundle >= e.bundle {
				r.fail("entries of a channel are out of order")
			}
			c.entries[j] = e
			if r.err != nil {
				return
			}
		}
		if head >= uint64(len(c.entries)) {
			r.fail("a channel without a head")
			return
		}
		c.head = int(head)
		if i > 0 && x.channels[i-1].name >= c.name {
			r.fail("channels are out of order")
			return
		}
		x.channels[i] = c
	}
	if _, ok := slices.BinarySearchFunc(x.channels, x.defaultChannel, func(c indexChannel, name string) int {
		return cmp.Compare(c.name, name)
	}); x.hasPackage && !ok {
		r.fail("the default channel is not there")
	}
}

func (r *indexReader) gvks(x *index) {
	x.gvks = make([]indexGVK, r.count(4))
	for i := range x.gvks {
		k := indexGVK{gvk: gvk{r.string(), r.string(), r.string()}}
		k.bundles = make([]int, r.count(1))
		for j := range k.bundles {
			k.bundles[j] = r.position(len(x.bundles))
			if j > 0 && k.bundles[j-1] >= k.bundles[j] {
				r.fail("providers are out of order")
			}
		}
		if i > 0 && x.gvks[i-1].gvk.compare(k.gvk) >= 0 {
			r.fail("APIs are out of order")
		}
		x.gvks[i] = k
		if r.err != nil {
			return
		}
	}
}
