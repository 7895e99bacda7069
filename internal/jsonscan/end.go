package jsonscan

import "bytes"

// End finds the end of a JSON value without looking at its grammar, in as many pieces as it arrives in.
type End struct {
	depth    int
	inString bool
}

// Advance looks at data from offset i on, which is where the last call stopped. It returns the offset behind the value
// and true, or where to go on when there is more data.
func (e *End) Advance(data []byte, i int) (int, bool) {
	for i < len(data) {
		if e.inString {
			quote := bytes.IndexByte(data[i:], '"')
			if quote < 0 {
				// Backslashes at the end of the piece must be seen together with what follows them.
				return len(data) - backslashes(data[i:]), false
			}
			escapes := backslashes(data[i : i+quote])
			i += quote + 1
			if escapes%2 == 0 {
				e.inString = false
				if e.depth == 0 {
					return i, true
				}
			}
			continue
		}
		switch data[i] {
		case '"':
			if e.depth == 0 && i > 0 {
				return i, true // a word before it
			}
			e.inString = true
		case '{', '[':
			if e.depth == 0 && i > 0 {
				return i, true
			}
			e.depth++
		case '}', ']':
			if e.depth--; e.depth <= 0 {
				return i + 1, true
			}
		case ' ', '\t', '\r', '\n', ',', ':':
			if e.depth == 0 {
				return max(i, 1), true
			}
		}
		i++
	}
	return i, false
}

// backslashes returns how many backslashes data ends with.
func backslashes(data []byte) int {
	n := 0
	for n < len(data) && data[len(data)-1-n] == '\\' {
		n++
	}
	return n
}
