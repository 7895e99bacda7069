package medium

import (
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
)

// segment is a file of the archive while it is written. Its sum is that of the bytes so far, so that no file is read
// again for it.
type segment struct {
	n    int
	f    *os.File
	size int64
	sum  hash.Hash
	// members is how many there are.
	members int
	// whole tells that the file had the end of an archive when it was opened again.
	whole bool
}

func newSegment(root *os.Root, n int) (*segment, error) {
	f, err := root.OpenFile(partial(n), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &segment{n: n, f: f, sum: sha256.New()}, nil
}

// mark is a state of a segment that it can return to.
type mark struct {
	size    int64
	members int
	sum     []byte
}

func (s *segment) mark() (mark, error) {
	state, err := s.sum.(encoding.BinaryMarshaler).MarshalBinary()
	return mark{s.size, s.members, state}, err
}

// rollback removes what was written after a mark.
func (s *segment) rollback(m mark) error {
	s.size, s.members = m.size, m.members
	_, err := s.f.Seek(m.size, io.SeekStart)
	return errors.Join(s.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.sum), s.f.Truncate(m.size), err)
}

// Write appends bytes.
func (s *segment) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.size += int64(n)
	s.sum.Write(p[:n])
	return n, err
}

var zeros [trailer]byte

// pad fills the last block of a member.
func (s *segment) pad() error {
	_, err := s.Write(zeros[:padded(s.size)-s.size])
	return err
}

// end writes the end of the archive and makes the file durable. The file stays open.
func (s *segment) end() (Segment, error) {
	if _, err := s.Write(zeros[:]); err != nil {
		return Segment{}, err
	}
	if err := s.f.Sync(); err != nil {
		return Segment{}, err
	}
	return Segment{Name: SegmentName(s.n), Bytes: s.size,
		SHA256: digest.NewDigest(digest.SHA256, s.sum)}, nil
}
