package canon

import "bytes"

// flow reads the flow collection at i and returns the offset after it. It accepts JSON's syntax and unquoted words.
// Lines in it may have any indentation.
func (r *fastReader) flow(i int) int {
	if r.depth++; r.depth > r.max.MaxDepth {
		return -1
	}
	if r.src[i] == '[' {
		i = r.flowSequence(i)
	} else {
		i = r.flowMapping(i)
	}
	r.depth--
	return i
}

// flowSpace returns the offset of the next token within a flow collection.
func (r *fastReader) flowSpace(i int) int {
	for i = skipSpaces(r.src, i); i < len(r.src) && r.src[i] == '\n'; {
		i = skipSpaces(r.src, i+1)
	}
	if i >= len(r.src) {
		return -1
	}
	return i
}

func (r *fastReader) flowSequence(i int) int {
	r.dst = append(r.dst, '[')
	i = r.flowSpace(i + 1)
	for i >= 0 && r.src[i] != ']' {
		if i = r.flowValue(i); i < 0 {
			return -1
		}
		if r.src[i] == ',' {
			if i = r.flowSpace(i + 1); i >= 0 && r.src[i] != ']' {
				r.dst = append(r.dst, ',')
			}
		} else if r.src[i] != ']' {
			return -1
		}
	}
	r.dst = append(r.dst, ']')
	return afterFound(i)
}

// afterFound returns i+1, or -1 if i is negative.
func afterFound(i int) int {
	if i < 0 {
		return -1
	}
	return i + 1
}

func (r *fastReader) flowMapping(i int) int {
	r.dst = append(r.dst, '{')
	o := object{first: len(r.c.members)}
	i = r.flowSpace(i + 1)
	for i >= 0 && r.src[i] != '}' {
		if i = r.flowKey(i, &o); i < 0 {
			return -1
		}
		this := len(r.c.members) - 1
		if i = r.flowSpace(i); i < 0 {
			return -1
		}
		if i = r.flowValue(i); i < 0 {
			return -1
		}
		r.c.members[this].end = len(r.dst)
		if r.src[i] == ',' {
			if i = r.flowSpace(i + 1); i >= 0 && r.src[i] != '}' {
				r.dst = append(r.dst, ',')
			}
		} else if r.src[i] != '}' {
			return -1
		}
	}
	if i < 0 {
		return -1
	}
	r.dst = append(r.c.endObject(o, r.dst, r.duplicate), '}')
	return i + 1
}

// flowKey reads a key and its colon.
func (r *fastReader) flowKey(i int, o *object) int {
	start := i
	m := member{key: len(r.dst) + 1}
	if c := r.src[i]; c == '"' || c == '\'' {
		if i = r.quoted(i, false); i < 0 {
			return -1
		}
		m.escaped = bytes.IndexByte(r.dst[m.key:], '\\') >= 0
		i = skipSpaces(r.src, i)
	} else {
		if i = flowWord(r.src, i); i == start || r.src[i] != ':' || r.src[i+1] != ' ' && r.src[i+1] != '\n' ||
			!r.plainKey(r.src[start:i], false) {
			return -1
		}
	}
	if r.src[i] != ':' || i-start > longestKey {
		return -1
	}
	m.keyEnd = len(r.dst) - 1
	if !r.c.addMember(o, r.dst, m, r.max.MaxMembers) {
		return -1
	}
	r.dst = append(r.dst, ':')
	return i + 1
}

// flowValue reads the value at i and returns the offset of the next token.
func (r *fastReader) flowValue(i int) int {
	switch r.src[i] {
	case '"', '\'':
		i = r.quoted(i, true)
	case '[', '{':
		i = r.flow(i)
	default:
		end := flowWord(r.src, i)
		if end == i || !r.plainValue(r.src[i:end], false) {
			return -1
		}
		if c := r.src[end]; c != ',' && c != ']' && c != '}' && c != ' ' && c != '\n' {
			return -1
		}
		i = end
	}
	if i < 0 {
		return -1
	}
	return r.flowSpace(i)
}

// flowWord returns the end of the plain scalar at i, which may consist of letters, digits and a few signs without
// meaning in flow collections.
func flowWord(src []byte, i int) int {
	for start := i; ; i++ {
		switch c := src[i]; {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z', c == '_', c == '/':
		case i > start && (c == '.' || c == '+' || c == '-'):
		case c == '-' && '0' <= src[i+1] && src[i+1] <= '9':
		default:
			return i
		}
	}
}
