package opmformat

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Database is a pogreb database that is read: anybody's, so that nothing in it is believed. Only its logs are read, which hold
// all that there is: the table of hashes beside them is a way to find entries and is made of them, and so are the counts. A
// later record of a key takes the place of an earlier one. It needs no lock and changes nothing.
//
//	NNNNN-SEQUENCE.psg   header, then records: key length (2 bytes), value length (4), key, value, CRC-32 of these (4)
//
// All numbers are little-endian; the highest bit of a value's length says that the key was deleted.
type Database struct {
	// Logs are the files, in the order of their sequence.
	Logs []Log
	// Entries are sorted by key.
	Entries []DatabaseEntry
}

// Log is a file of records.
type Log struct {
	io.ReaderAt
	Size int64
}

// DatabaseEntry is a key, and where its record is.
type DatabaseEntry struct {
	Key    string
	Log    int   // position in Logs
	Offset int64 // of the record
	Size   int   // of the value
}

// Value is where the value is in its log.
func (e *DatabaseEntry) Value() int64 { return e.Offset + recordHead + int64(len(e.Key)) }

// Bounds of what is read of a database.
const (
	maxLogs      = 1000
	maxLog       = 4 << 30
	maxKeys      = 256 << 20 // bytes, all together
	headerSize   = 512
	recordHead   = 6
	recordTail   = 4
	deletedValue = 1 << 31
)

// MaxValue is the size in bytes of the largest value that is read: that of an answer many times larger than any client takes.
const MaxValue = 256 << 20

var header = append(append([]byte("pogreb\x0e\xfd"), 2, 0, 0, 0), make([]byte, headerSize-12)...)

// OpenDatabase reads the keys of the database in fsys. open opens one of its files, which stays open and belongs to the
// caller, also after an error.
func OpenDatabase(ctx context.Context, fsys fs.FS, open func(name string) (Log, error)) (*Database, error) {
	names, err := logNames(fsys)
	if err != nil {
		return nil, err
	}
	d := &Database{}
	entries := map[string]DatabaseEntry{}
	budget := scanBudget{}
	for i, name := range names {
		log, err := open(name)
		if err != nil {
			return nil, err
		}
		d.Logs = append(d.Logs, log)
		err = log.scan(ctx, &budget, func(e DatabaseEntry, deleted bool) {
			if e.Log = i; deleted {
				delete(entries, e.Key)
			} else {
				entries[e.Key] = e
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	d.Entries = slices.SortedFunc(maps.Values(entries), func(a, b DatabaseEntry) int { return strings.Compare(a.Key, b.Key) })
	return d, nil
}

// logNames are the files of records in the order in which they were begun.
func logNames(fsys fs.FS) ([]string, error) {
	all, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	sequence := map[string]uint64{}
	for _, e := range all {
		stem, ok := strings.CutSuffix(e.Name(), ".psg")
		if !ok {
			continue
		}
		id, number, _ := strings.Cut(stem, "-")
		_, err := strconv.ParseUint(id, 10, 16)
		n, err2 := strconv.ParseUint(number, 10, 64)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("%.100q is no name of a log", e.Name())
		}
		if sequence[e.Name()] = n; len(sequence) > maxLogs {
			return nil, fmt.Errorf("more than %d logs", maxLogs)
		}
	}
	if len(sequence) == 0 {
		return nil, errors.New("a database without a log")
	}
	names := slices.SortedFunc(maps.Keys(sequence), func(a, b string) int {
		if sequence[a] < sequence[b] {
			return -1
		}
		return 1
	})
	for i := 1; i < len(names); i++ {
		if sequence[names[i-1]] == sequence[names[i]] {
			return nil, fmt.Errorf("%s and %s have the same place in the order of logs", names[i-1], names[i])
		}
	}
	return names, nil
}

// scanBudget counts what was read of all logs.
type scanBudget struct{ records, keys int }

// window is how much of a log is read at a time: the keys of some small records, or the head of a large one.
const window = 16 << 10

// scan gives each record to do, without its Log.
func (l Log) scan(ctx context.Context, budget *scanBudget, do func(e DatabaseEntry, deleted bool)) error {
	if l.Size > maxLog {
		return fmt.Errorf("it has more than %d bytes", int64(maxLog))
	}
	buf := make([]byte, window)
	if n, err := l.ReadAt(buf[:headerSize], 0); n < headerSize {
		return errors.Join(errors.New("it has no header of a database"), notEOF(err))
	}
	if !bytes.Equal(buf[:headerSize], header) {
		return errors.New("it has no header of a database")
	}
	var (
		have []byte // what is read from start
		from int64
	)
	// at returns n bytes at an offset, all of which are in the file.
	at := func(offset int64, n int) ([]byte, error) {
		if offset < from || offset+int64(n) > from+int64(len(have)) {
			if n > len(buf) {
				buf = make([]byte, n)
			}
			read, err := l.ReadAt(buf[:min(int64(len(buf)), l.Size-offset)], offset)
			if read < n {
				return nil, errors.Join(io.ErrUnexpectedEOF, notEOF(err))
			}
			have, from = buf[:read], offset
		}
		return have[offset-from:][:n], nil
	}
	for offset := int64(headerSize); offset < l.Size; {
		if budget.records++; budget.records > MaxEntries {
			return fmt.Errorf("more than %d entries", MaxEntries)
		}
		if budget.records%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rest := l.Size - offset
		if rest < recordHead {
			return fmt.Errorf("it ends in the record at %d", offset)
		}
		head, err := at(offset, recordHead)
		if err != nil {
			return err
		}
		keySize, size := int(binary.LittleEndian.Uint16(head)), binary.LittleEndian.Uint32(head[2:])
		deleted := size&deletedValue != 0
		size &^= deletedValue
		whole := recordHead + int64(keySize) + int64(size) + recordTail
		switch {
		case whole > rest:
			return fmt.Errorf("it ends in the record at %d", offset)
		case size > MaxValue:
			return fmt.Errorf("the value at %d has %d bytes (limit %d)", offset, size, MaxValue)
		}
		if budget.keys += keySize; budget.keys > maxKeys {
			return fmt.Errorf("more than %d bytes of keys", maxKeys)
		}
		key, err := at(offset+recordHead, keySize)
		if err != nil {
			return err
		}
		do(DatabaseEntry{Key: string(key), Offset: offset, Size: int(size)}, deleted)
		offset += whole
	}
	return nil
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// Find returns the entry of a key, or nil.
func (d *Database) Find(key string) *DatabaseEntry {
	i, ok := slices.BinarySearchFunc(d.Entries, key, func(e DatabaseEntry, key string) int { return strings.Compare(e.Key, key) })
	if !ok {
		return nil
	}
	return &d.Entries[i]
}

// Read reads the value of an entry into buf, which is grown if need be, and checks its sum.
func (d *Database) Read(e *DatabaseEntry, buf []byte) ([]byte, error) {
	n := recordHead + len(e.Key) + e.Size
	buf = slices.Grow(buf[:0], n+recordTail)[:n+recordTail]
	if read, err := d.Logs[e.Log].ReadAt(buf, e.Offset); read < len(buf) {
		return nil, errors.Join(fmt.Errorf("the entry %.100q: %w", e.Key, io.ErrUnexpectedEOF), notEOF(err))
	}
	if crc32.ChecksumIEEE(buf[:n]) != binary.LittleEndian.Uint32(buf[n:]) || string(buf[recordHead:recordHead+len(e.Key)]) != e.Key {
		return nil, fmt.Errorf("the entry %.100q is damaged", e.Key)
	}
	return buf[recordHead+len(e.Key) : n], nil
}
