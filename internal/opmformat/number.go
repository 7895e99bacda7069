package opmformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// AppendNumbers appends canonical JSON as opm has it in memory: every number has been a float64. opm hashes that text, so a
// digest of anything more exact would be refused.
func AppendNumbers(dst, text []byte) ([]byte, error) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := stringEnd(text, i)
			if end < 0 {
				return nil, errors.New("a string without an end")
			}
			dst = append(dst, text[i:end]...)
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[end]) >= 0 {
				end++
			}
			f, err := strconv.ParseFloat(string(text[i:end]), 64)
			if err != nil || math.IsInf(f, 0) {
				return nil, fmt.Errorf("the number %.40s is too large for opm, which cannot read the catalog", text[i:end])
			}
			number, err := json.Marshal(f)
			if err != nil {
				return nil, err
			}
			dst = append(dst, number...)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst, nil
}

// stringEnd is behind the string that begins at i; -1 if it does not end.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		n := bytes.IndexAny(text[i:], `"\`)
		if n < 0 {
			return -1
		}
		i += n
		if text[i] == '"' {
			return i + 1
		}
		i++ // what is escaped
	}
	return -1
}
