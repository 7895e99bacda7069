package canon

import (
	"bytes"
	"slices"
)

// member is one member of an object being written, as offsets in the output: the text of its key without quotes, and
// the end of its value. The member starts at the quote before its key.
type member struct {
	key, keyEnd, end int
	offset           int  // of the key in the source, for warnings
	escaped          bool // the key has escapes, so its written form does not sort like its value
}

// object is an object being written. Its members are on the converter's stack of members.
type object struct {
	first    int // index of its first member on the stack
	unsorted bool
}

// addMember pushes a member whose key has just been written; the top of the stack is the previous member of the same
// object. It returns false if there are too many members.
func (c *Converter) addMember(o *object, dst []byte, m member, most int) bool {
	if n := len(c.members); n > o.first && !o.unsorted {
		o.unsorted = c.compareKeys(dst, &c.members[n-1], &m) >= 0
	}
	c.members = append(c.members, m)
	return len(c.members) <= most
}

func (c *Converter) compareKeys(dst []byte, a, b *member) int {
	x, y := dst[a.key:a.keyEnd], dst[b.key:b.keyEnd]
	if a.escaped || b.escaped {
		return bytes.Compare(decodeString(x), decodeString(y))
	}
	return bytes.Compare(x, y)
}

// endObject sorts the members of an object that ends at the end of dst and pops them from the stack. Of members with
// equal keys the last remains. It returns dst without the closing brace. duplicate is called with the source offset and
// the canonical text of each repeated key.
func (c *Converter) endObject(o object, dst []byte, duplicate func(offset int, key []byte)) []byte {
	members := c.members[o.first:]
	c.members = c.members[:o.first]
	if !o.unsorted {
		return dst
	}
	start := members[0].key - 1
	slices.SortStableFunc(members, func(a, b member) int { return c.compareKeys(dst, &a, &b) })
	out := c.scratch[:0]
	for i := range members {
		m := &members[i]
		if i+1 < len(members) && c.compareKeys(dst, m, &members[i+1]) == 0 {
			duplicate(members[i+1].offset, dst[m.key:m.keyEnd])
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, dst[m.key-1:m.end]...)
	}
	if c.scratch = out[:0]; cap(out) > large {
		c.scratch = nil
	}
	return append(dst[:start], out...)
}
