package medium

import "encoding"

// follow takes the sum of a segment behind what is written: of complete members, and of the first one that is not. What
// was just written is still in memory, so that hardly anything is read from the disk again. A member that fails takes
// the sum back to its beginning. It ends with the segment.
func (s *segment) follow() {
	buffer := make([]byte, fetchBuffer)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	for !s.stopped {
		to := s.ready()
		if to <= s.summed {
			if s.stopped = s.ended && len(s.regions) == 0; !s.stopped {
				s.changed.Wait()
			}
			continue
		}
		part := buffer[:min(int64(len(buffer)), to-s.summed)]
		s.busy = true
		s.mu.Unlock()
		_, err := s.f.ReadAt(part, s.summed)
		if err == nil {
			s.sum.Write(part)
		}
		s.mu.Lock()
		s.busy = false
		if s.changed.Broadcast(); err != nil {
			s.err, s.stopped = err, true
			return
		}
		s.summed += int64(len(part))
	}
}

// ready returns up to where the sum can go, in the first region that is not in it.
func (s *segment) ready() int64 {
	for len(s.regions) > 0 {
		r := s.regions[0]
		if r.state == complete && s.summed == r.end {
			s.regions = s.regions[1:]
			continue
		}
		if r.mark == nil {
			mark, err := s.sum.(encoding.BinaryMarshaler).MarshalBinary()
			if err != nil {
				s.err, s.stopped = err, true
				return 0
			}
			r.mark = mark
		}
		switch r.state {
		case complete:
			return r.end
		case hole:
			return r.start
		}
		return r.at + r.done
	}
	return s.summed
}
