package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// magic is the start of every SQLite database (file format specification, section 1.3.1).
const magic = "SQLite format 3\x00"

const headerSize = 100

// header has the used fields of a database file's first 100 bytes.
type header struct {
	pageSize int64
	pages    int64 // 0 if unknown
	wal      bool  // the file is in write-ahead-log mode
}

// IsDatabase reports whether what is read starts like a SQLite database. It reads no more than that start.
func IsDatabase(r io.Reader) (bool, error) {
	var start [len(magic)]byte
	if _, err := io.ReadFull(r, start[:]); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(start[:]) == magic, nil
}

func readHeader(f *os.File) (header, error) {
	var b [headerSize]byte
	n, err := io.ReadFull(io.NewSectionReader(f, 0, headerSize), b[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return header{}, err
	}
	if !bytes.HasPrefix(b[:n], []byte(magic)) {
		return header{}, ErrNotDatabase
	}
	if n < headerSize {
		return header{}, fmt.Errorf("%w: the header has %d of %d bytes", ErrDamaged, n, headerSize)
	}
	h := header{pageSize: int64(binary.BigEndian.Uint16(b[16:18]))}
	if h.pageSize == 1 {
		h.pageSize = 65536
	}
	if h.pageSize < 512 || h.pageSize&(h.pageSize-1) != 0 {
		return header{}, fmt.Errorf("%w: invalid page size %d", ErrDamaged, h.pageSize)
	}
	if read, write := b[19], b[18]; read == 0 || read > 2 || write == 0 || write > 2 {
		return header{}, fmt.Errorf("%w: file format version %d/%d", ErrDamaged, write, read)
	}
	h.wal = b[19] == 2
	// The page count is only valid if the last writer of the file updated it.
	if changed, validFor := binary.BigEndian.Uint32(b[24:28]), binary.BigEndian.Uint32(b[92:96]); changed == validFor {
		h.pages = int64(binary.BigEndian.Uint32(b[28:32]))
	}
	return h, nil
}

// checkSize compares the number of pages in the header with the size of the file.
func (h header) checkSize(size int64) error {
	if size%h.pageSize != 0 {
		return fmt.Errorf("%w: its size, %d bytes, is not a multiple of its page size, %d", ErrDamaged, size,
			h.pageSize)
	}
	if h.pages != 0 && h.pages != size/h.pageSize {
		return fmt.Errorf("%w: its header declares %d pages, its size gives %d", ErrDamaged, h.pages, size/h.pageSize)
	}
	return nil
}
