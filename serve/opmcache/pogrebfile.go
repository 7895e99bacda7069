package opmcache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"

	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
)

// database writes the files of a pogreb database, format version 2, which consists of a log of records and a hash table
// of them:
//
//	00000-1.psg      header, then records: key length (2 bytes), value length (4), key, value, CRC-32 of these (4)
//	main.pix         header, then buckets of 31 slots (hash, segment, lengths, offset) and the offset of one more bucket
//	overflow.pix     header, then the buckets for what does not fit into those
//	*.pmt            header, then counts in Go's gob encoding
//
// All numbers are little-endian. The table grows by linear hashing, one bucket at a time, so that its size depends only
// on the number of keys.
type database struct {
	s       *spool.Spool
	records []record
}

// record is the position of an entry in the log.
type record struct {
	key    string
	offset uint32
	size   uint32 // of the value
}

// value returns the position of the value.
func (r record) value() spool.Span {
	return spool.Span{At: int64(r.offset) + recordHead + int64(len(r.key)), Len: int64(r.size)}
}

const (
	headerSize = 512
	recordHead = 6
	bucketSize = 512
	bucketLen  = 31 // slots in a bucket
	slotSize   = 16
	// The table gets another bucket when more than this part of its slots is used.
	fullest = 0.7
	// seed of the hash. The library chooses a random one for a new database and reads it from an existing one.
	seed = 0x62696e64
	// Limits of the format.
	maxKey     = math.MaxUint16
	maxValue   = 512 << 20
	maxSegment = math.MaxUint32
)

func fileHeader() []byte {
	b := make([]byte, headerSize)
	copy(b, "pogreb\x0e\xfd")
	binary.LittleEndian.PutUint32(b[8:], 2)
	return b
}

func newDatabase(dir string) (*database, error) {
	s := spool.New(dir, 0)
	_, err := s.Write(fileHeader())
	return &database{s: s}, err
}

// appendEntry appends an entry to the log.
func (d *database) appendEntry(key, value []byte) error {
	if len(key) > maxKey || len(value) > maxValue || d.s.Len()+recordHead+int64(len(key)+len(value))+4 > maxSegment {
		return fmt.Errorf(
			"the entry %.200q does not fit into opm's database: keys have %d bytes at most, values %d MiB, all "+
				"together 4 GiB", key, maxKey, maxValue>>20)
	}
	head := binary.LittleEndian.AppendUint16(nil, uint16(len(key)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(value)))
	head = append(head, key...)
	sum := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, value)
	d.records = append(d.records, record{string(key), uint32(d.s.Len()), uint32(len(value))})
	for _, b := range [...][]byte{head, value, binary.LittleEndian.AppendUint32(nil, sum)} {
		if _, err := d.s.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// files returns the files of the database. The log can be read once: closing it closes the spool. There must be at
// least one entry, and no key twice.
func (d *database) files() ([]layers.Entry, error) {
	size := d.s.Len()
	log := layers.Entry{Name: "00000-1.psg", Size: size, Open: func() (io.ReadCloser, error) {
		return readOnce{d.s.Open(spool.Span{Len: size}), d.s}, nil
	}}
	main, overflow, t := d.table()
	n := len(d.records)
	return []layers.Entry{
		log,
		layers.Bytes("00000-1.psg.pmt", 0, append(fileHeader(), segmentMeta(n)...)),
		layers.Bytes("db.pmt", 0, append(fileHeader(), databaseMeta(seed)...)),
		layers.Bytes("index.pmt", 0, append(fileHeader(), t.meta(n)...)),
		layers.Bytes("main.pix", 0, main),
		layers.Bytes("overflow.pix", 0, overflow),
	}, nil
}

// tableSize is the size of a hash table: buckets = 1<<level + split.
type tableSize struct{ buckets, level, split int }

// sizeFor returns the size of a table after n insertions.
func sizeFor(n int) tableSize {
	buckets := 1
	for float64(n)/float64(buckets*bucketLen) > fullest {
		buckets++
	}
	level := bits.Len(uint(buckets)) - 1
	return tableSize{buckets, level, buckets - 1<<level}
}

// bucket returns the bucket of a hash.
func (t tableSize) bucket(hash uint32) int {
	if b := hash & (1<<t.level - 1); int(b) >= t.split {
		return int(b)
	}
	return int(hash & (1<<(t.level+1) - 1))
}

// table returns the hash table of all records in their order: the contents of both of its files.
func (d *database) table() (main, overflow []byte, t tableSize) {
	t = sizeFor(len(d.records))
	main = append(fileHeader(), make([]byte, t.buckets*bucketSize)...)
	overflow = fileHeader()
	type place struct {
		overflow bool
		at       int // index of the bucket
		used     int
	}
	last := make([]place, t.buckets)
	for i := range last {
		last[i].at = headerSize + i*bucketSize
	}
	for _, r := range d.records {
		hash := murmur([]byte(r.key), seed)
		p := &last[t.bucket(hash)]
		if p.used == bucketLen {
			file := main
			if p.overflow {
				file = overflow
			}
			binary.LittleEndian.PutUint64(file[p.at+bucketLen*slotSize:], uint64(len(overflow)))
			*p = place{true, len(overflow), 0}
			overflow = append(overflow, make([]byte, bucketSize)...)
		}
		file := main
		if p.overflow {
			file = overflow
		}
		slot := file[p.at+p.used*slotSize:]
		binary.LittleEndian.PutUint32(slot, hash)
		binary.LittleEndian.PutUint16(slot[4:], 0) // the only segment
		binary.LittleEndian.PutUint16(slot[6:], uint16(len(r.key)))
		binary.LittleEndian.PutUint32(slot[8:], r.size)
		binary.LittleEndian.PutUint32(slot[12:], r.offset)
		p.used++
	}
	return main, overflow, t
}

// murmur is MurmurHash3, x86, 32 bits.
func murmur(data []byte, seed uint32) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := seed, uint32(len(data))
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	if copy(tail[:], data) > 0 {
		h ^= mix(binary.LittleEndian.Uint32(tail[:]))
	}
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
