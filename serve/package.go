package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// Package is an opened cache file: the index in memory, the answers in the file. It is safe for concurrent use.
type Package struct {
	index
	r     io.ReaderAt
	size  int64 // of the file
	close func() error
}

// OpenPackage opens a cache file of size bytes. It reads and verifies the header and the index; the answers are
// verified when they are read, or all at once by [Package.Verify]. The errors are [ErrCorrupt], [ErrVersion] and those
// of r, which must stay readable until Close.
func OpenPackage(r io.ReaderAt, size int64) (*Package, error) {
	if size < headerSize {
		return nil, corrupt("%d bytes are less than a header", size)
	}
	head := make([]byte, headerSize)
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	var h header
	if err := h.parse(head, size); err != nil {
		return nil, err
	}
	raw := make([]byte, h.indexLength)
	if n, err := r.ReadAt(raw, int64(h.indexOffset)); err != nil && (err != io.EOF || n != len(raw)) {
		return nil, err
	}
	if sha256.Sum256(raw) != h.indexSum {
		return nil, corrupt("the index's checksum does not match")
	}
	x, err := decodeIndex(raw, h.indexOffset)
	if err != nil {
		return nil, err
	}
	return &Package{index: *x, r: r, size: size}, nil
}

// Sources returns the files from which the cache file was built, sorted by name. The slice must not be changed.
func (p *Package) Sources() []SourceFile { return p.sources }

// Close releases the file.
func (p *Package) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

// verifyPiece is how many bytes are read at once for verification, unless one record is larger.
const verifyPiece = 256 << 10

var verifyBuffers = sync.Pool{New: func() any { b := make([]byte, verifyPiece); return &b }}

// Verify reads and verifies all answers once in the order of the file.
func (p *Package) Verify(ctx context.Context) error {
	pooled := verifyBuffers.Get().(*[]byte)
	defer verifyBuffers.Put(pooled)
	var piece []record // contiguous, as checked on opening
	size := 0
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf := *pooled
		if size > len(buf) { // one record
			return p.verifyLarge(ctx, buf, piece[0])
		}
		if err := p.readRaw(buf[:size], int64(piece[0].offset)); err != nil {
			return err
		}
		for _, rec := range piece {
			if err := p.checkSum(buf[:rec.length], rec); err != nil {
				return err
			}
			buf = buf[rec.length:]
		}
		return nil
	}
	for rec := range p.records() {
		if len(piece) > 0 && size+int(rec.length) > verifyPiece {
			if err := flush(); err != nil {
				return err
			}
			piece, size = piece[:0], 0
		}
		piece, size = append(piece, rec), size+int(rec.length)
	}
	return flush()
}

// verifyLarge verifies a record that is larger than the buffer.
func (p *Package) verifyLarge(ctx context.Context, buf []byte, rec record) error {
	var sum uint32
	for at, end := int64(rec.offset), int64(rec.offset)+int64(rec.length); at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), end-at)]
		if err := p.readRaw(part, at); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, part)
		at += int64(len(part))
	}
	return p.compareSum(sum, rec)
}

// read fills buf with a record and verifies it, so that a file that was changed never gives a wrong answer.
func (p *Package) read(buf []byte, rec record) error {
	if err := p.readRaw(buf, int64(rec.offset)); err != nil {
		return err
	}
	return p.checkSum(buf, rec)
}

func (p *Package) readRaw(buf []byte, offset int64) error {
	n, err := p.r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = corrupt("the file ends in an answer")
	}
	return fmt.Errorf("package %q: %w", p.name, err)
}

func (p *Package) checkSum(buf []byte, rec record) error {
	return p.compareSum(crc32.Checksum(buf, castagnoli), rec)
}

func (p *Package) compareSum(sum uint32, rec record) error {
	if sum != rec.crc {
		return fmt.Errorf("package %q: %w", p.name, corrupt("an answer's checksum does not match"))
	}
	return nil
}
