package yamllint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// parser goes through the grammar of YAML, as PyYAML has it, and checks on its way that lines begin where they should and
// that no key occurs twice in a mapping.
type parser struct {
	*scanner
	next    int      // index of a token
	handles []string // of tags
	failed  *Problem // the first syntax error
	report  func(at mark, rule, format string, args ...any)

	step       int   // by how much a collection is indented in the first one that is
	stepKnown  bool  //
	line       int32 // the last one that has a token
	lineIndent int32
}

// column is where the first token of a line is expected.
type column struct {
	at       int32
	explicit bool // of a key after "?", which is indented more
}

// peek returns a token ahead; one of kind streamEnd after the last one. At a syntax error of the scanner the parser fails.
func (p *parser) peek(n int) token {
	i := p.next + n
	if p.unfinished && i >= p.certain {
		if n == 0 && p.failed == nil {
			p.failed = p.err
		}
		return token{kind: streamEnd}
	}
	return p.tokens[min(i, len(p.tokens)-1)]
}

func (p *parser) is(all ...kind) bool { return slices.Contains(all, p.peek(0).kind) }

// seen reports whether problems of a token are reported: not if a syntax error is next to it.
func (p *parser) seen(i int) bool { return !p.unfinished || i+2 < p.certain }

// take goes over the next token, which is expected in a column if it is the first one of its line.
func (p *parser) take(c column) token {
	t := p.peek(0)
	defer func() { p.next = min(p.next+1, len(p.tokens)) }()
	if t.kind == streamStart || t.kind == streamEnd || t.kind == blockEnd || t.kind == scalar && t.empty {
		return t
	}
	if t.start.line > p.line {
		want, found := c.at, t.start.column
		if c.explicit && t.kind != value {
			want = p.indented(want, t)
		}
		if p.lineIndent = found; found != want && p.seen(p.next) {
			if want < 0 {
				p.report(t.start, "indentation", "wrong indentation: expected at least %d", found+1)
			} else {
				p.report(t.start, "indentation", "wrong indentation: expected %d but found %d", want, found)
			}
		}
	}
	p.line = t.end.line
	if t.kind == scalar { // some end at the beginning of a later line
		for i := t.end.offset - 1; i >= t.start.offset-1 && i >= 0 && strings.IndexByte(" \t\n\r\v\f", p.text[i]) >= 0; i-- {
			if p.text[i] == '\n' {
				p.line--
			}
		}
	}
	return t
}

// indented returns the column of a collection in one at another column, where the first such one says by how much.
func (p *parser) indented(at int32, t token) int32 {
	if !p.stepKnown {
		p.step, p.stepKnown = int(t.start.column-at), true
	}
	return at + int32(p.step)
}

// fail notes a syntax error at the next token.
func (p *parser) fail(format string, args ...any) {
	p.failAt(p.peek(0).start, format, args...)
}

func (p *parser) failAt(m mark, format string, args ...any) {
	if p.failed == nil {
		p.failed = &Problem{int(m.line) + 1, int(m.column) + 1, "syntax", "syntax error: " + fmt.Sprintf(format, args...)}
	}
}

// parse goes through all documents.
func (p *parser) parse() {
	p.line, p.next, p.handles = -1, 1, []string{"!", "!!"}
	root := column{}
	if !p.is(directive, documentStart, streamEnd) {
		p.document(root)
	}
	for p.failed == nil {
		for p.is(documentEnd) {
			p.take(root)
		}
		if p.is(streamEnd) {
			return
		}
		p.handles = nil
		version := false
		for p.is(directive) {
			t := p.take(root)
			name, value, _ := strings.Cut(string(t.text), " ")
			switch {
			case name == "YAML" && version:
				p.failAt(t.start, "found duplicate YAML directive")
			case name == "YAML" && strings.TrimLeft(value, "0") != "1":
				p.failAt(t.start, "found incompatible YAML document (version 1.* is required)")
			case name == "TAG" && slices.Contains(p.handles, value):
				p.failAt(t.start, "duplicate tag handle '%s'", value)
			case name == "TAG":
				p.handles = append(p.handles, value)
			}
			version = version || name == "YAML"
		}
		p.handles = append(p.handles, "!", "!!")
		if !p.is(documentStart) {
			p.fail("expected '<document start>', but found %s", p.peek(0).kind)
			return
		}
		p.take(root)
		if !p.is(directive, documentStart, documentEnd, streamEnd) {
			p.document(root)
		} else if p.is(documentEnd) {
			p.take(root)
		}
	}
}

func (p *parser) document(root column) {
	p.node(root, true, false)
	if p.failed == nil && p.is(documentEnd) {
		p.take(root)
	}
}

// node goes through a value.
func (p *parser) node(c column, block, indentless bool) {
	if p.failed != nil {
		return
	}
	if p.is(alias) {
		p.take(c)
		return
	}
	before := streamStart
	for range 2 { // in any order
		t := p.peek(0)
		if t.kind != anchor && t.kind != tag || t.kind == before {
			break
		}
		before = p.take(c).kind
		if t.kind == tag && len(t.text) > 0 && !slices.Contains(p.handles, string(t.text)) {
			p.failAt(t.start, "found undefined tag handle '%s'", t.text)
		}
	}
	switch t := p.peek(0); {
	case indentless && t.kind == blockEntry:
		p.sequence(c, true)
	case t.kind == scalar:
		p.take(c)
	case t.kind == flowSequenceStart || t.kind == flowMappingStart:
		p.flowCollection(c)
	case block && t.kind == blockSequenceStart:
		p.sequence(c, false)
	case block && t.kind == blockMappingStart:
		p.mapping(c)
	case before == streamStart:
		p.fail("expected the node content, but found %s", t.kind)
	}
}

// sequence goes through a block sequence; one that is not indented in its mapping has neither beginning nor end.
func (p *parser) sequence(c column, indentless bool) {
	if !indentless {
		c = column{at: p.take(c).start.column}
	}
	for p.failed == nil && p.is(blockEntry) {
		t := p.take(c)
		c = column{at: t.start.column}
		next := p.peek(0)
		if next.kind == blockEntry || next.kind == blockEnd || indentless && (next.kind == key || next.kind == value) {
			continue
		}
		at := next.start.column
		if next.start.line != t.end.line && at != t.start.column {
			at = p.indented(t.start.column, next)
		}
		p.node(column{at: at}, true, false)
	}
	if indentless || p.failed != nil {
		return
	}
	if !p.is(blockEnd) {
		p.fail("expected <block end>, but found %s", p.peek(0).kind)
		return
	}
	p.take(c)
}

// mapping goes through a block mapping.
func (p *parser) mapping(c column) {
	c = column{at: p.take(c).start.column}
	var keys keys
	for p.failed == nil && p.is(key) {
		k := p.key(c, &keys)
		if !p.is(key, value, blockEnd) {
			p.node(k, true, true)
		}
		if p.failed == nil && p.is(value) {
			if c := p.value(k); !p.is(key, value, blockEnd) {
				p.node(c, true, true)
			}
		}
	}
	if p.failed != nil {
		return
	}
	if !p.is(blockEnd) {
		p.fail("expected <block end>, but found %s", p.peek(0).kind)
		return
	}
	p.take(c)
}

// key goes over the beginning of a key, and returns where the key is expected.
func (p *parser) key(c column, keys *keys) column {
	t := p.take(c)
	if next := p.peek(0); next.kind == scalar && keys != nil && !keys.add(next.text) && p.seen(p.next-1) {
		p.report(next.start, "key-duplicates", "duplication of key \"%s\" in mapping", next.text)
	}
	return column{c.at, t.start.offset < t.end.offset}
}

// value goes over a colon, and returns where the value is expected.
func (p *parser) value(k column) column {
	before := p.tokens[p.next-1]
	p.take(k)
	next := p.peek(0)
	if (next.kind == anchor || next.kind == tag) && next.start.line == before.start.line && next.start.line < p.peek(1).start.line {
		next = p.peek(1)
	}
	switch {
	case next.kind == blockEnd || next.kind == flowMappingEnd || next.kind == flowSequenceEnd || next.kind == key:
		return column{at: k.at}
	case k.explicit:
		return column{at: p.indented(k.at, next)}
	case next.start.line == before.start.line:
		return column{at: next.start.column}
	case (next.kind == blockSequenceStart || next.kind == blockEntry) && next.start.column == k.at:
		return column{at: k.at}
	}
	return column{at: p.indented(k.at, next)}
}

// flowCollection goes through "[...]" or "{...}".
func (p *parser) flowCollection(c column) {
	t := p.take(c)
	line, next := p.lineIndent, p.peek(0)
	c = column{at: next.start.column}
	if next.start.line != t.start.line {
		c.at = p.indented(line, next)
	}
	end, comma, names := flowSequenceEnd, "expected ',' or ']', but got %s", (*keys)(nil)
	if t.kind == flowMappingStart {
		end, comma, names = flowMappingEnd, "expected ',' or '}', but got %s", &keys{}
	}
	for first := true; p.failed == nil && !p.is(end); first = false {
		if !first {
			if !p.is(flowEntry) {
				p.fail(comma, p.peek(0).kind)
				return
			}
			if p.take(c); p.is(end) {
				break
			}
		}
		if !p.is(key) {
			p.node(c, false, false)
			continue
		}
		k := p.key(c, names)
		if !p.is(value, flowEntry, end) {
			p.node(k, false, false)
		}
		if p.failed == nil && p.is(value) {
			if v := p.value(k); !p.is(flowEntry, end) {
				p.node(v, false, false)
			}
		}
	}
	if p.failed == nil {
		p.take(column{at: line})
	}
}

// keys are those of a mapping.
type keys struct {
	few  [][]byte
	many map[string]bool
}

// add reports whether a key is the first of its name.
func (k *keys) add(name []byte) bool {
	if string(name) == "<<" {
		return true
	}
	if k.many[string(name)] || k.many == nil && slices.ContainsFunc(k.few, func(f []byte) bool { return bytes.Equal(f, name) }) {
		return false
	}
	if k.few = append(k.few, name); len(k.few) == 16 {
		k.many = map[string]bool{}
		for _, name := range k.few {
			k.many[string(name)] = true
		}
	}
	if k.many != nil {
		k.many[string(name)] = true
	}
	return true
}
