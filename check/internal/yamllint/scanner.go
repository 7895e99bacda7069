package yamllint

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token. The kinds, and where tokens begin and end, are those of PyYAML, whose scanner this one
// follows: positions of problems depend on it.
type kind uint8

const (
	streamStart kind = iota
	streamEnd
	directive
	documentStart
	documentEnd
	blockSequenceStart
	blockMappingStart
	blockEnd
	flowSequenceStart
	flowMappingStart
	flowSequenceEnd
	flowMappingEnd
	blockEntry
	flowEntry
	key
	value
	alias
	anchor
	tag
	scalar
)

var kinds = [...]string{"<stream start>", "<stream end>", "<directive>", "<document start>", "<document end>", "<block sequence start>",
	"<block mapping start>", "<block end>", "[", "{", "]", "}", "-", ",", "?", ":", "<alias>", "<anchor>", "<tag>", "<scalar>"}

func (k kind) String() string { return "'" + kinds[k] + "'" }

// mark is a place in the text: an offset in bytes, a line and a column in characters, from 0.
type mark struct{ offset, line, column int32 }

type token struct {
	kind       kind
	empty      bool   // of a scalar
	text       []byte // of a scalar, the handle of a tag, the name of a directive
	start, end mark
}

const (
	maxDepth  = 250       // collections in each other
	maxTokens = 4_000_000 // of a text
)

// simpleKey is where a key may begin that has no "?".
type simpleKey struct {
	possible, required bool
	number             int // the index of its first token
	mark               mark
}

type scanner struct {
	text    []byte
	pos     int
	line    int
	begin   int  // of the line
	ascii   bool // columns are bytes
	returns bool // there are carriage returns
	known   int  // an offset in the line whose column is known
	column  int  // of known

	tokens     []token
	certain    int // tokens before which no other one can be inserted
	flow       int // "[" and "{" that are open
	indent     int
	indents    []int
	allowed    bool        // whether a simple key may begin here
	keys       []simpleKey // by flow level
	err        *Problem
	unfinished bool // the tokens end before the text does
}

// scan returns the tokens of a text up to the end or to an error.
func scan(text []byte, ascii bool) *scanner {
	s := &scanner{text: text, ascii: ascii, returns: bytes.IndexByte(text, '\r') >= 0, indent: -1, allowed: true, keys: make([]simpleKey, 1), tokens: make([]token, 0, 16+len(text)/16)}
	s.add(streamStart, s.mark())
	for s.stale() {
		s.certain = len(s.tokens)
		for _, k := range s.keys {
			if k.possible {
				s.certain = k.number
				break
			}
		}
		if n := len(s.tokens); s.tokens[n-1].kind == streamEnd {
			return s
		} else if n > maxTokens || len(s.indents) > maxDepth || s.flow > maxDepth {
			s.fail("the text has more than %d tokens, or more than %d collections in each other", maxTokens, maxDepth)
			break
		}
		if !s.fetch() {
			break
		}
	}
	s.unfinished = true
	return s
}

// fail notes a syntax error at the position.
func (s *scanner) fail(format string, args ...any) bool {
	m := s.mark()
	s.err = &Problem{int(m.line) + 1, int(m.column) + 1, "syntax", "syntax error: " + fmt.Sprintf(format, args...)}
	return false
}

// found quotes the character at the position.
func (s *scanner) found() string {
	if s.pos >= len(s.text) {
		return `'\x00'`
	}
	r, _ := utf8.DecodeRune(s.text[s.pos:])
	return "'" + strings.Trim(strconv.Quote(string(r)), `"`) + "'"
}

// at returns the byte at an offset; 0 at the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// breakAt returns the length of the line break at an offset; 0 if there is none.
func (s *scanner) breakAt(i int) int {
	switch c := s.at(i); {
	case c == '\n':
		return 1
	case c == '\r':
		if s.at(i+1) == '\n' {
			return 2
		}
		return 1
	case c == 0xc2 && s.at(i+1) == 0x85:
		return 2
	case c == 0xe2 && s.at(i+1) == 0x80 && s.at(i+2)&^1 == 0xa8:
		return 3
	}
	return 0
}

// spaced reports whether there is white space, a line break or the end at an offset.
func (s *scanner) spaced(i int) bool {
	c := s.at(i)
	return c == 0 || c == ' ' || c == '\t' || s.breakAt(i) > 0
}

// ended reports whether there is a line break or the end at the position.
func (s *scanner) ended() bool { return s.pos >= len(s.text) || s.breakAt(s.pos) > 0 }

// newline goes over a line break.
func (s *scanner) newline() bool {
	n := s.breakAt(s.pos)
	if n == 0 {
		return false
	}
	s.pos += n
	s.line++
	s.begin, s.known, s.column = s.pos, s.pos, 0
	return true
}

func (s *scanner) spaces() {
	for s.at(s.pos) == ' ' {
		s.pos++
	}
}

// rest goes to the end of the line.
func (s *scanner) rest() {
	if s.ascii && !s.returns {
		if n := bytes.IndexByte(s.text[s.pos:], '\n'); n >= 0 {
			s.pos += n
		} else {
			s.pos = len(s.text)
		}
	}
	for !s.ended() {
		s.pos++
	}
}

func (s *scanner) mark() mark {
	if s.ascii {
		return mark{int32(s.pos), int32(s.line), int32(s.pos - s.begin)}
	}
	for b := s.text[s.known:s.pos]; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r != '\ufeff' {
			s.column++
		}
		b = b[n:]
	}
	s.known = s.pos
	return mark{int32(s.pos), int32(s.line), int32(s.column)}
}

// add adds a token that ends at the position.
func (s *scanner) add(k kind, start mark) bool {
	s.tokens = append(s.tokens, token{kind: k, start: start, end: s.mark()})
	return true
}

// one adds a token of some bytes.
func (s *scanner) one(k kind, n int) bool {
	start := s.mark()
	s.pos += n
	return s.add(k, start)
}

// fetch adds the next tokens.
func (s *scanner) fetch() bool {
	if s.pos == 0 && bytes.HasPrefix(s.text, []byte("\ufeff")) {
		s.pos = len("\ufeff")
	}
	for {
		s.spaces()
		if s.at(s.pos) == '#' {
			s.rest()
		}
		if !s.newline() {
			break
		}
		if s.flow == 0 {
			s.allowed = true
		}
	}
	if !s.stale() {
		return false
	}
	at := s.mark()
	s.unwind(int(at.column))
	c := s.at(s.pos)
	switch {
	case s.pos >= len(s.text):
		s.unwind(-1)
		if !s.noKey() {
			return false
		}
		s.keys = nil
		return s.add(streamEnd, at)
	case at.column == 0 && c == '%':
		s.unwind(-1)
		s.allowed = false
		return s.noKey() && s.directive(at)
	case at.column == 0 && s.separator():
		s.unwind(-1)
		if !s.noKey() {
			return false
		}
		s.allowed = false
		if c == '-' {
			return s.one(documentStart, 3)
		}
		return s.one(documentEnd, 3)
	case c == '[' || c == '{':
		if !s.mayBeKey(at) {
			return false
		}
		s.flow++
		s.keys = append(s.keys[:s.flow], simpleKey{})
		s.allowed = true
		if c == '[' {
			return s.one(flowSequenceStart, 1)
		}
		return s.one(flowMappingStart, 1)
	case c == ']' || c == '}':
		if !s.noKey() {
			return false
		}
		s.flow = max(0, s.flow-1)
		s.allowed = false
		if c == ']' {
			return s.one(flowSequenceEnd, 1)
		}
		return s.one(flowMappingEnd, 1)
	case c == ',':
		s.allowed = true
		return s.noKey() && s.one(flowEntry, 1)
	case c == '-' && s.spaced(s.pos+1):
		return s.collect(blockSequenceStart, "sequence entries are not allowed here", at, true) && s.one(blockEntry, 1)
	case c == '?' && (s.flow > 0 || s.spaced(s.pos+1)):
		return s.collect(blockMappingStart, "mapping keys are not allowed here", at, s.flow == 0) && s.one(key, 1)
	case c == ':' && (s.flow > 0 || s.spaced(s.pos+1)):
		k := s.keys[s.flow]
		if !k.possible {
			return s.collect(blockMappingStart, "mapping values are not allowed here", at, s.flow == 0) && s.one(value, 1)
		}
		s.keys[s.flow].possible = false
		s.tokens = slices.Insert(s.tokens, k.number, token{kind: key, start: k.mark, end: k.mark})
		if s.flow == 0 && s.deeper(int(k.mark.column)) {
			s.tokens = slices.Insert(s.tokens, k.number, token{kind: blockMappingStart, start: k.mark, end: k.mark})
		}
		s.allowed = false
		return s.one(value, 1)
	case (c == '|' || c == '>') && s.flow == 0:
		s.allowed = true
		return s.noKey() && s.block(at)
	}
	plain := !strings.ContainsRune("-?:,[]{}#&*!|>'\"%@`\t", rune(c)) || !s.spaced(s.pos+1) && (c == '-' || s.flow == 0 && (c == '?' || c == ':'))
	if !plain && !strings.ContainsRune("*&!'\"", rune(c)) {
		return s.fail("found character %s that cannot start any token", s.found())
	}
	if !s.mayBeKey(at) {
		return false
	}
	s.allowed = false
	switch c {
	case '*':
		return s.anchor(alias, at)
	case '&':
		return s.anchor(anchor, at)
	case '!':
		return s.tag(at)
	case '\'', '"':
		return s.quoted(c, at)
	}
	s.plain(at)
	return true
}

// separator reports whether "---" or "..." is at the position, which is the beginning of a line.
func (s *scanner) separator() bool {
	c := s.at(s.pos)
	return (c == '-' || c == '.') && s.at(s.pos+1) == c && s.at(s.pos+2) == c && s.spaced(s.pos+3)
}

// collect begins an entry of a block collection, and the collection if it is the first one.
func (s *scanner) collect(k kind, refusal string, at mark, allowed bool) bool {
	if s.flow == 0 {
		if !s.allowed {
			return s.fail("%s", refusal)
		}
		if s.deeper(int(at.column)) {
			s.add(k, at)
		}
	}
	s.allowed = allowed
	return s.noKey()
}

// deeper begins a block collection at a column, unless it is one of the current collection.
func (s *scanner) deeper(column int) bool {
	if s.indent >= column {
		return false
	}
	s.indents = append(s.indents, s.indent)
	s.indent = column
	return true
}

// unwind ends the block collections that are indented more than a column.
func (s *scanner) unwind(column int) {
	for s.flow == 0 && s.indent > column {
		s.add(blockEnd, s.mark())
		s.indent = s.indents[len(s.indents)-1]
		s.indents = s.indents[:len(s.indents)-1]
	}
}

func (s *scanner) mayBeKey(at mark) bool {
	if !s.allowed {
		return true
	}
	if !s.noKey() {
		return false
	}
	s.keys[s.flow] = simpleKey{true, s.flow == 0 && s.indent == int(at.column), len(s.tokens), at}
	return true
}

// noKey drops the simple key that is possible at this level.
func (s *scanner) noKey() bool {
	if k := s.keys[s.flow]; k.possible && k.required {
		return s.fail("could not find expected ':'")
	}
	s.keys[s.flow].possible = false
	return true
}

// stale drops the simple keys that end on another line, or are too long.
func (s *scanner) stale() bool {
	for i := range s.keys {
		k := &s.keys[i]
		if !k.possible || int(k.mark.line) == s.line && (s.pos-int(k.mark.offset) <= 1024 || utf8.RuneCount(s.text[k.mark.offset:s.pos]) <= 1024) {
			continue
		}
		if k.required {
			return s.fail("could not find expected ':'")
		}
		k.possible = false
	}
	return true
}

func word(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '-' || c == '_'
}

// words goes over letters and digits, and returns them.
func (s *scanner) words() string {
	from := s.pos
	for word(s.at(s.pos)) {
		s.pos++
	}
	return string(s.text[from:s.pos])
}

func (s *scanner) directive(start mark) bool {
	s.pos++
	name := s.words()
	if name == "" || s.at(s.pos) == '\t' || !s.spaced(s.pos) {
		return s.fail("expected alphabetic or numeric character, but found %s", s.found())
	}
	end := s.mark()
	switch name {
	case "YAML":
		s.spaces()
		for _, after := range []string{".", " "} {
			from := s.pos
			for c := s.at(s.pos); '0' <= c && c <= '9'; c = s.at(s.pos) {
				s.pos++
			}
			if s.pos == from || after == "." && s.at(s.pos) != '.' || after == " " && !s.spaced(s.pos) {
				return s.fail("expected a digit or '%s', but found %s", after, s.found())
			}
			if after == "." {
				name += " " + string(s.text[from:s.pos])
				s.pos++
			}
		}
		end = s.mark()
	case "TAG":
		s.spaces()
		handle, ok := s.handle()
		if !ok {
			return false
		}
		if s.at(s.pos) != ' ' {
			return s.fail("expected ' ', but found %s", s.found())
		}
		s.spaces()
		if !s.uri() {
			return false
		}
		if s.at(s.pos) == '\t' || !s.spaced(s.pos) {
			return s.fail("expected ' ', but found %s", s.found())
		}
		name += " " + handle
		end = s.mark()
	default:
		s.rest()
	}
	s.tokens = append(s.tokens, token{kind: directive, text: []byte(name), start: start, end: end})
	return s.ignored()
}

// ignored goes over a comment and the end of the line.
func (s *scanner) ignored() bool {
	s.spaces()
	if s.at(s.pos) == '#' {
		s.rest()
	}
	if !s.ended() {
		return s.fail("expected a comment or a line break, but found %s", s.found())
	}
	s.newline()
	return true
}

func (s *scanner) anchor(k kind, start mark) bool {
	s.pos++
	if s.words() == "" || !s.spaced(s.pos) && !strings.ContainsRune("?:,]}%@`", rune(s.at(s.pos))) {
		return s.fail("expected alphabetic or numeric character, but found %s", s.found())
	}
	return s.add(k, start)
}

func (s *scanner) tag(start mark) bool {
	handle := ""
	switch {
	case s.at(s.pos+1) == '<':
		s.pos += 2
		if !s.uri() {
			return false
		}
		if s.at(s.pos) != '>' {
			return s.fail("expected '>', but found %s", s.found())
		}
		s.pos++
	case s.spaced(s.pos + 1):
		s.pos++
	default:
		i := s.pos + 1
		for s.at(i) != '!' && (s.at(i) == '\t' || !s.spaced(i)) {
			i++
		}
		handle = "!"
		if s.at(i) == '!' {
			var ok bool
			if handle, ok = s.handle(); !ok {
				return false
			}
		} else {
			s.pos++
		}
		if !s.uri() {
			return false
		}
	}
	if s.at(s.pos) == '\t' || !s.spaced(s.pos) {
		return s.fail("expected ' ', but found %s", s.found())
	}
	s.add(tag, start)
	s.tokens[len(s.tokens)-1].text = []byte(handle)
	return true
}

// handle goes over "!", "!!" or "!NAME!".
func (s *scanner) handle() (string, bool) {
	from := s.pos
	if s.at(s.pos) == '!' {
		s.pos++
		if s.at(s.pos) == ' ' {
			return "!", true
		}
		s.words()
	}
	if s.at(s.pos) != '!' {
		return "", s.fail("expected '!', but found %s", s.found())
	}
	s.pos++
	return string(s.text[from:s.pos]), true
}

func (s *scanner) uri() bool {
	from := s.pos
	for c := s.at(s.pos); word(c) || c != 0 && strings.IndexByte(";/?:@&=+$,_.!~*'()[]%", c) >= 0; c = s.at(s.pos) {
		s.pos++
		if c == '%' && !s.hexadecimal(2) {
			return s.fail("expected URI escape sequence of 2 hexadecimal numbers, but found %s", s.found())
		}
	}
	if s.pos == from {
		return s.fail("expected URI, but found %s", s.found())
	}
	return true
}

// hexadecimal goes over some digits.
func (s *scanner) hexadecimal(n int) bool {
	for i := range n {
		if c := s.at(s.pos + i); c == 0 || strings.IndexByte("0123456789ABCDEFabcdef", c) < 0 {
			return false
		}
	}
	s.pos += n
	return true
}

// block scans a literal or a folded scalar.
func (s *scanner) block(start mark) bool {
	s.pos++
	increment, keep, header := 0, false, s.pos
	for range 2 {
		switch c := s.at(s.pos); {
		case (c == '+' || c == '-') && (s.pos == header || increment > 0):
			keep = c == '+'
			s.pos++
		case c == '0' && increment == 0:
			return s.fail("expected indentation indicator in the range 1-9, but found 0")
		case '1' <= c && c <= '9' && increment == 0:
			increment = int(c - '0')
			s.pos++
		}
	}
	if s.at(s.pos) == '\t' || !s.spaced(s.pos) {
		return s.fail("expected chomping or indentation indicators, but found %s", s.found())
	}
	if !s.ignored() {
		return false
	}
	indent, end := max(s.indent+1, 1), s.mark()
	// breaks goes over empty lines, and to the indentation of the next one.
	breaks := func(most int) (widest int) {
		end = s.mark()
		for {
			for s.pos-s.begin < most && s.at(s.pos) == ' ' {
				s.pos++
			}
			widest = max(widest, s.pos-s.begin)
			if !s.newline() {
				return widest
			}
			end = s.mark()
		}
	}
	if increment > 0 {
		indent += increment - 1
		breaks(indent)
	} else {
		indent = max(indent, breaks(len(s.text)))
	}
	content, lines := false, int(end.line) > int(start.line)+1
	for s.pos-s.begin == indent && s.pos < len(s.text) {
		content = true
		s.rest()
		s.newline()
		breaks(indent)
	}
	t := token{kind: scalar, start: start, end: end, empty: !content && !(keep && lines)}
	if !t.empty {
		t.text = s.text[start.offset:end.offset]
	}
	s.tokens = append(s.tokens, t)
	return true
}

// quoted scans a scalar in quotes.
func (s *scanner) quoted(quote byte, start mark) bool {
	s.pos++
	escapes := false
	for {
		switch c := s.at(s.pos); {
		case s.pos >= len(s.text):
			return s.fail("found unexpected end of stream")
		case c == quote && quote == '\'' && s.at(s.pos+1) == quote:
			s.pos += 2
			escapes = true
		case c == quote:
			s.pos++
			s.add(scalar, start)
			t := &s.tokens[len(s.tokens)-1]
			raw := s.text[start.offset:s.pos]
			t.text = raw[1 : len(raw)-1]
			if escapes && quote == '\'' {
				t.text = bytes.ReplaceAll(t.text, []byte("''"), []byte("'"))
			} else if plain, err := strconv.Unquote(string(raw)); escapes && err == nil {
				t.text = []byte(plain)
			}
			t.empty = len(t.text) == 0
			return true
		case c == '\\' && quote == '"':
			escapes = true
			s.pos++
			c := s.at(s.pos)
			switch n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; {
			case n > 0:
				s.pos++
				if !s.hexadecimal(n) {
					return s.fail("expected escape sequence of %d hexadecimal numbers, but found %s", n, s.found())
				}
			case s.ended() && c != 0: // the line break follows
			case c == 0 || strings.IndexByte("0abt\tnvfre \"\\/N_LP", c) < 0:
				return s.fail("found unknown escape character %s", s.found())
			default:
				s.pos++
			}
		case c > ' ' && c < 0x80:
			s.pos++
		case s.newline():
			if s.separator() {
				return s.fail("found unexpected document separator")
			}
		default:
			s.pos++
		}
	}
}

// plain scans a scalar without quotes, which may go on in the next lines.
func (s *scanner) plain(start mark) {
	end := start
	for s.at(s.pos) != '#' {
		from := s.pos
		for !s.spaced(s.pos) {
			if c := s.at(s.pos); c == ':' && (s.spaced(s.pos+1) || s.flow > 0 && strings.IndexByte(",[]{}", s.at(s.pos+1)) >= 0) ||
				s.flow > 0 && strings.IndexByte(",?[]{}", c) >= 0 {
				break
			}
			s.pos++
		}
		if s.pos == from {
			break
		}
		s.allowed = false
		end = s.mark()
		s.spaces()
		if s.breakAt(s.pos) == 0 {
			if s.pos == int(end.offset) {
				break
			}
			continue
		}
		s.allowed = true
		separator := false
		for !separator && (s.at(s.pos) == ' ' || s.breakAt(s.pos) > 0) {
			if s.newline() {
				separator = s.separator()
			} else {
				s.pos++
			}
		}
		if separator || s.flow == 0 && int(s.mark().column) < s.indent+1 {
			break
		}
	}
	s.tokens = append(s.tokens, token{kind: scalar, start: start, end: end, text: s.text[start.offset:end.offset]})
}
