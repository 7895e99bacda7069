package opmcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// openedDatabase is a pogreb database being read. It is untrusted.
type openedDatabase struct {
	log     logFile
	size    int64    // of the log
	taken   int64    // by records
	records []record // those in the table
}

// logFile is the file with the records.
type logFile interface {
	io.ReaderAt
	fs.File
}

// Limits of the files other than the log.
const (
	maxTable = 64 << 20
	maxCount = 1 << 20
	maxKeys  = 256 << 20 // bytes
)

// openDatabase reads the table and the keys. There must be exactly one log, with random access.
func openDatabase(fsys fs.FS) (_ *openedDatabase, err error) {
	if fsys, err = fs.Sub(fsys, "db"); err != nil {
		return nil, err
	}
	log, err := openLog(fsys)
	if err != nil {
		return nil, err
	}
	db := &openedDatabase{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.log.Close())
		}
	}()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	db.size = info.Size()
	var of struct{ HashSeed uint32 }
	var index struct {
		Level                                 uint8
		NumKeys, NumBuckets, SplitBucketIndex uint32
	}
	if err := errors.Join(readCounts(fsys, "db.pmt", &of), readCounts(fsys, "index.pmt", &index)); err != nil {
		return nil, err
	}
	t := tableSize{int(index.NumBuckets), int(index.Level), int(index.SplitBucketIndex)}
	if index.Level > 30 || t.buckets != 1<<t.level+t.split || t.split > 1<<t.level {
		return nil, errors.New("index.pmt: impossible numbers of buckets")
	}
	if err := db.readTable(fsys, t, of.HashSeed); err != nil {
		return nil, err
	}
	if len(db.records) != int(index.NumKeys) {
		return nil, fmt.Errorf("the table has %d entries and should have %d", len(db.records), index.NumKeys)
	}
	return db, nil
}

// openLog opens the only log of a database.
func openLog(fsys fs.FS) (logFile, error) {
	names, err := fs.Glob(fsys, "*.psg")
	if err != nil {
		return nil, err
	}
	if len(names) != 1 || !strings.HasPrefix(names[0], "00000") {
		return nil, fmt.Errorf("%d logs, where only one can be read", len(names))
	}
	f, err := fsys.Open(names[0])
	if err != nil {
		return nil, err
	}
	log, ok := f.(logFile)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s cannot be read at any place", names[0]), f.Close())
	}
	head := make([]byte, headerSize)
	if _, err := log.ReadAt(head, 0); err != nil || !bytes.Equal(head, fileHeader()) {
		return nil, errors.Join(fmt.Errorf("%s has no header of a database", names[0]), f.Close())
	}
	return log, nil
}

// readHeaded reads the content of a file after its header.
func readHeaded(fsys fs.FS, name string, limit int64) ([]byte, error) {
	text, err := readSmall(fsys, name, limit)
	if err != nil {
		return nil, err
	}
	text, ok := bytes.CutPrefix(text, fileHeader())
	if !ok {
		return nil, fmt.Errorf("%s has no header of a database", name)
	}
	return text, nil
}

func readCounts(fsys fs.FS, name string, into any) error {
	text, err := readHeaded(fsys, name, maxCount)
	if err != nil {
		return err
	}
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readTable reads the entries of all buckets and checks that each is in the bucket of its key.
func (d *openedDatabase) readTable(fsys fs.FS, t tableSize, seed uint32) error {
	main, err := readHeaded(fsys, "main.pix", maxTable)
	if err != nil {
		return err
	}
	overflow, err := readHeaded(fsys, "overflow.pix", maxTable)
	if err != nil {
		return err
	}
	if len(main) != t.buckets*bucketSize {
		return fmt.Errorf("main.pix has %d bytes for %d buckets", len(main), t.buckets)
	}
	keys, chained := 0, 0
	for i := range t.buckets {
		bucket := main[i*bucketSize:][:bucketSize]
		for {
			for at := 0; at < bucketLen*slotSize; at += slotSize {
				slot := bucket[at:]
				offset := binary.LittleEndian.Uint32(slot[12:])
				if offset == 0 {
					break
				}
				r, err := d.record(offset, binary.LittleEndian.Uint16(slot[6:]), binary.LittleEndian.Uint32(slot[8:]))
				if err != nil {
					return err
				}
				hash := murmur([]byte(r.key), seed)
				if binary.LittleEndian.Uint16(slot[4:]) != 0 || hash != binary.LittleEndian.Uint32(slot) ||
					t.bucket(hash) != i {
					return fmt.Errorf("the entry %.100q is where no look-up finds it", r.key)
				}
				if keys += len(r.key); keys > maxKeys || len(d.records) == maxEntries {
					return fmt.Errorf("more than %d entries, or %d bytes of keys", maxEntries, maxKeys)
				}
				d.records = append(d.records, r)
			}
			next := binary.LittleEndian.Uint64(bucket[bucketLen*slotSize:])
			if next == 0 {
				break
			}
			at := next - headerSize
			if chained++; next < headerSize || at%bucketSize != 0 || at >= uint64(len(overflow)) ||
				uint64(len(overflow))-at < bucketSize || chained > len(overflow)/bucketSize {
				return errors.New("a bucket leads to none, or to one that was met before")
			}
			bucket = overflow[at:][:bucketSize]
		}
	}
	return nil
}

// record reads the key of an entry.
func (d *openedDatabase) record(offset uint32, keySize uint16, size uint32) (record, error) {
	head := make([]byte, recordHead+int(keySize))
	if _, err := d.log.ReadAt(head, int64(offset)); err != nil {
		return record{}, fmt.Errorf("the entry at %d: %w", offset, err)
	}
	if offset < headerSize || binary.LittleEndian.Uint16(head) != keySize ||
		binary.LittleEndian.Uint32(head[2:]) != size || size > maxValue {
		return record{}, fmt.Errorf("the entry at %d is not what the table says", offset)
	}
	// Overlapping records could make a small file expensive.
	if d.taken += recordHead + int64(keySize) + int64(size) + 4; d.taken > d.size {
		return record{}, fmt.Errorf("the entry at %d overlaps with others", offset)
	}
	return record{string(head[recordHead:]), offset, size}, nil
}

// digest writes all entries sorted by key and verifies their checksums.
func (d *openedDatabase) digest(ctx context.Context, w io.Writer) error {
	sort.Slice(d.records, func(i, j int) bool { return d.records[i].key < d.records[j].key })
	for i, r := range d.records {
		if i > 0 && d.records[i-1].key == r.key {
			return fmt.Errorf("two entries with the key %.100q", r.key)
		}
		sum := crc32.NewIEEE()
		n := recordHead + int64(len(r.key)) + int64(r.size)
		head := io.NewSectionReader(d.log, int64(r.offset), recordHead)
		rest := io.NewSectionReader(d.log, int64(r.offset)+recordHead, n-recordHead)
		if _, err := io.Copy(sum, head); err != nil {
			return err
		}
		if _, err := io.Copy(io.MultiWriter(sum, w), ctxio.Reader{Ctx: ctx, R: rest}); err != nil {
			return err
		}
		var end [4]byte
		if _, err := d.log.ReadAt(end[:], int64(r.offset)+n); err != nil ||
			binary.LittleEndian.Uint32(end[:]) != sum.Sum32() {
			return fmt.Errorf("the entry %.100q is damaged", path.Clean(r.key))
		}
	}
	return nil
}
