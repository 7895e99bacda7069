package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

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
