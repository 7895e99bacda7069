package jsonscan

import "bytes"

// End finds the end of a JSON value without parsing it, from any number of pieces.
type End struct {
	depth    int
	inString bool
}

// Advance scans data from offset i, the result of the previous call. It returns the offset after the value and true, or
// the offset at which to continue when there is more data and false.
func (e *End) Advance(data []byte, i int) (int, bool) {
	for i < len(data) {
		if e.inString {
			quote := bytes.IndexByte(data[i:], '"')
			if quote < 0 {
				// Backslashes at the end of the piece are scanned again together with what follows them.
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
				return i, true // the start of the next value ends a word
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

// backslashes returns the number of trailing backslashes.
func backslashes(data []byte) int {
	n := 0
	for n < len(data) && data[len(data)-1-n] == '\\' {
		n++
	}
	return n
}
