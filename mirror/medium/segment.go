package medium

import (
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"
	"os"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
)

// segment is a file of the archive while it is written. Members get their places one after the other, and several are
// filled at a time. The sum of the file follows behind what is written.
type segment struct {
	n int
	f *os.File

	mu      sync.Mutex
	changed *sync.Cond
	// size is where the next member begins; members is how many there are.
	size    int64
	members int
	// ended tells that the end of the archive is written behind the members.
	ended bool
	// regions are the members that are not in the sum yet, in their order.
	regions []*region
	sum     hash.Hash
	summed  int64 // how much is in the sum
	busy    bool  // the sum is being taken
	stopped bool
	err     error // of taking the sum
	result  *Segment
	closed  bool
}

func newSegment(f *os.File, n int) *segment {
	s := &segment{n: n, f: f, sum: sha256.New()}
	s.changed = sync.NewCond(&s.mu)
	go s.follow()
	return s
}

// region is the place of a member.
type region struct {
	s *segment
	// start is where the header is, at the content, end the next member.
	start, at, size, end int64

	// These are guarded by the segment.
	done  int64 // how much of the content is written
	state state
	mark  []byte // the sum before the region, while that goes through it
}

// state is that of a region.
type state int

const (
	filling  state = iota
	complete       // all is written
	hole           // its content failed, and there are members behind it
)

// reserve gives a member its place and writes its header.
func (s *segment) reserve(head []byte, size int64) (*region, error) {
	s.mu.Lock()
	start := s.size
	s.mu.Unlock()
	if _, err := s.f.WriteAt(head, start); err != nil {
		return nil, errors.Join(err, s.f.Truncate(start))
	}
	return s.add(start, start+int64(len(head)), size, filling), nil
}

// add records a region at the end of the segment.
func (s *segment) add(start, at, size int64, is state) *region {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &region{s: s, start: start, at: at, size: size, end: at + padded(size), state: is}
	s.size, s.members, s.regions = r.end, s.members+1, append(s.regions, r)
	s.changed.Broadcast()
	return r
}

// Write writes more of the content of a region.
func (r *region) Write(p []byte) (int, error) {
	n, err := r.s.f.WriteAt(p, r.at+r.done)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.done += int64(n)
	r.s.changed.Broadcast()
	return n, err
}

var zeros [trailer]byte

// finish fills the last block of a region, which is complete then.
func (r *region) finish() error {
	if _, err := r.s.f.WriteAt(zeros[:padded(r.size)-r.size], r.at+r.size); err != nil {
		return err
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.state = complete
	r.s.changed.Broadcast()
	return nil
}

// fail gives a region up: it is removed, or if there is something behind it, it is a hole that can be filled again.
func (r *region) fail() (isHole bool, err error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.changed.Wait()
	}
	if s.summed > r.start {
		s.summed = r.start
		if err := s.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(r.mark); err != nil {
			return false, err
		}
	}
	r.done, r.mark = 0, nil
	defer s.changed.Broadcast()
	if s.ended || r.end < s.size {
		r.state = hole
		return true, nil
	}
	s.regions = slices.DeleteFunc(s.regions, func(o *region) bool { return o == r })
	s.size, s.members = r.start, s.members-1
	return false, s.f.Truncate(s.size)
}

// dropHoles removes the holes at the end of a segment and returns them.
func (s *segment) dropHoles() (dropped []*region, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := len(s.regions); !s.ended && n > 0 && s.regions[n-1].state == hole; n-- {
		dropped = append(dropped, s.regions[n-1])
		s.size, s.members, s.regions = s.regions[n-1].start, s.members-1, s.regions[:n-1]
	}
	if len(dropped) > 0 {
		err = s.f.Truncate(s.size)
	}
	return dropped, err
}

// end writes the end of the archive behind the members, some of which may still be written.
func (s *segment) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	if _, err := s.f.WriteAt(zeros[:], s.size); err != nil {
		return errors.Join(err, s.f.Truncate(s.size))
	}
	s.ended = true
	s.changed.Broadcast()
	return nil
}

// settled tells whether all members of a segment that has its end are complete.
func (s *segment) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended && s.result == nil && !slices.ContainsFunc(s.regions, func(r *region) bool {
		return r.state != complete
	})
}

// close makes a settled segment durable, waits for its sum and closes the file.
func (s *segment) close() error {
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.mu.Lock()
	for !s.stopped {
		s.changed.Wait()
	}
	err := s.err
	if err == nil {
		s.sum.Write(zeros[:])
		s.result = &Segment{Name: segmentName(s.n), Bytes: s.size + trailer,
			SHA256: digest.NewDigest(digest.SHA256, s.sum)}
	}
	s.closed = true
	s.mu.Unlock()
	return errors.Join(err, s.f.Close())
}

// abandon closes the file as it is.
func (s *segment) abandon() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	for s.busy {
		s.changed.Wait()
	}
	s.stopped, s.closed = true, true
	s.changed.Broadcast()
	s.mu.Unlock()
	return s.f.Close()
}

// bytes returns how long the segment is so far.
func (s *segment) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}
