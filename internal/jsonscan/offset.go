package jsonscan

import (
	"bytes"
	"encoding/binary"
)

const spaces = 0x2020202020202020

// SkipSpace returns the offset of the first byte from i on that is not JSON white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\n', '\t', '\r':
			i++
			for i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == spaces {
				i += 8
			}
		default:
			return i
		}
	}
	return i
}

// StringEnd returns the offset after the string that starts at b[i]; -1 if it does not end.
func StringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		quote := bytes.IndexByte(b[j:], '"')
		if quote < 0 {
			return -1
		}
		j += quote
		escapes := 0
		for b[j-1-escapes] == '\\' {
			escapes++
		}
		if j++; escapes%2 == 0 {
			return j
		}
	}
}

// ValueEnd returns the offset after the value that starts at b[i]; -1 if there is none or it does not end. A number or
// word may end at the end of the text. White space is allowed.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		for depth := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				end := StringEnd(b, i)
				if end < 0 {
					return -1
				}
				i = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	start := i
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			if i == start {
				return -1
			}
			return i
		}
		i++
	}
	return i
}
