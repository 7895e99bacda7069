package serve

import (
	"encoding/json"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The manifests of a bundle are nearly all of its answer, and each is JSON text within a JSON string. Decoding a catalog's
// answers with encoding/json takes several times as long as building them anew (15.6 s of CPU against 1.8 s, 750 MB), so that
// the manifests are cut out first, and decoded once for a bundle that is in several channels.

// splitJSON divides an answer into the members csvJson and object, in their places, and all others. It is false for text that
// is not written as opm writes it, which is not for this function to judge.
func splitJSON(text []byte) (rest []byte, csv, objects []byte, ok bool) {
	i := skipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return nil, nil, nil, false
	}
	rest = append(rest, '{')
	for i = skipSpace(text, i+1); i < len(text) && text[i] != '}'; {
		from := i
		if text[i] != '"' {
			return nil, nil, nil, false
		}
		if i = stringEnd(text, i); i < 0 {
			return nil, nil, nil, false
		}
		key := string(text[from+1 : i-1])
		if i = skipSpace(text, i); i == len(text) || text[i] != ':' {
			return nil, nil, nil, false
		}
		i = skipSpace(text, i+1)
		value := i
		if i = valueEnd(text, i); i < 0 {
			return nil, nil, nil, false
		}
		switch {
		case key == "csvJson" && csv == nil && text[value] == '"':
			csv = text[value:i]
		case key == "object" && objects == nil && text[value] == '[':
			objects = text[value:i]
		default:
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(rest, text[from:i]...)
		}
		if i = skipSpace(text, i); i < len(text) && text[i] == ',' {
			i = skipSpace(text, i+1)
			if i < len(text) && text[i] == '}' {
				return nil, nil, nil, false
			}
		} else if i == len(text) || text[i] != '}' {
			return nil, nil, nil, false
		}
	}
	if i == len(text) || skipSpace(text, i+1) != len(text) {
		return nil, nil, nil, false
	}
	return append(rest, '}'), csv, objects, true
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is behind the string that begins at i; -1 if it does not end.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// valueEnd is behind the value that begins at i; -1 if it does not end. What is in it is not looked at.
func valueEnd(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i // behind a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// appendJSONManifests appends the fields csvJson and object of an api.Bundle, given as JSON; false where it is no string and no
// array of strings.
func appendJSONManifests(dst, csv, objects []byte) ([]byte, bool) {
	var buf []byte
	if csv != nil {
		var ok bool
		if buf, ok = appendUnquoted(buf[:0], csv); !ok {
			return nil, false
		}
		if len(buf) > 0 {
			dst = appendMessage(dst, bundleCSVJSON, buf)
		}
	}
	if objects == nil {
		return dst, true
	}
	i := skipSpace(objects, 1)
	for i < len(objects) && objects[i] == '"' {
		end := stringEnd(objects, i)
		if end < 0 {
			return nil, false
		}
		var ok bool
		if buf, ok = appendUnquoted(buf[:0], objects[i:end]); !ok {
			return nil, false
		}
		dst = protowire.AppendTag(dst, bundleObject, protowire.BytesType)
		dst = protowire.AppendBytes(dst, buf)
		if i = skipSpace(objects, end); i == len(objects) || objects[i] != ',' {
			break
		}
		if i = skipSpace(objects, i+1); i == len(objects) || objects[i] != '"' {
			return nil, false
		}
	}
	return dst, i == len(objects)-1 && objects[i] == ']'
}

// appendUnquoted appends what a JSON string stands for, as encoding/json decodes it.
func appendUnquoted(dst, quoted []byte) ([]byte, bool) {
	start := len(dst)
	text := quoted[1 : len(quoted)-1]
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '\\' {
			continue
		}
		plain := byte(0)
		if c == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case '"', '\\', '/':
				plain = text[i+1]
			case 'n':
				plain = '\n'
			case 't':
				plain = '\t'
			case 'r':
				plain = '\r'
			case 'u':
				if i+5 < len(text) && text[i+2] == '0' && text[i+3] == '0' && text[i+4] >= '0' && text[i+4] < '8' {
					if low := hexDigit(text[i+5]); low >= 0 {
						dst = append(dst, text[from:i]...)
						dst = append(dst, (text[i+4]-'0')<<4|byte(low))
						i += 5
						from = i + 1
						continue
					}
				}
			}
		}
		if plain == 0 {
			return slowUnquoted(dst[:start], quoted)
		}
		dst = append(append(dst, text[from:i]...), plain)
		i++
		from = i + 1
	}
	if dst = append(dst, text[from:]...); !utf8.Valid(dst[start:]) {
		return slowUnquoted(dst[:start], quoted)
	}
	return dst, true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// slowUnquoted is for what is rare: other characters by number, and what is no text.
func slowUnquoted(dst, quoted []byte) ([]byte, bool) {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil, false
	}
	return append(dst, s...), true
}
