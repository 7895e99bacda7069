package yamllint

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// walk goes along a text with the nodes that are read from it as a guide, so that it knows what comes next and has to find
// only where that ends. It checks the spaces between what it meets, the columns in which lines begin, and the keys.
type walk struct {
	*problems
	text             []byte // with some line breaks after it
	size             int    // without them
	pos, line, begin int    // everything before pos has been met; its line, from 1, and where that begins
	end, endLine     int    // where that which has been met last ends
	seen, indent     int    // the line of the last token, and the column of its first one
	step             int    // by how much what is indented first is; 0 before it
	known, column    int    // an offset in the line, and its column from 0
}

// structure checks the documents of a text, or what is before the line of the first syntax error.
func (p *problems) structure(text []byte) {
	most := 1
	for _, c := range []byte(":-?,[{") {
		most += 2 * bytes.Count(text, []byte{c})
	}
	if most > maxNodes {
		return
	}
	err := p.walk(text)
	if err == io.EOF {
		return
	}
	r := oneByte{bytes.NewReader([]byte(string(text) + padding))}
	_ = parse(r, func(*yaml.Node) {})
	at := int(r.Size()) - r.Len() - len(padding)
	if early().MatchString(err.Error()) {
		at += len(padding) - 1
	}
	at = min(max(at, 0), len(text))
	begin := func() int { return bytes.LastIndexByte(text[:at], '\n') + 1 }
	for range 9 {
		if *p = nil; !late().MatchString(p.walk(text[:begin()]).Error()) {
			break
		}
		at = begin() - 1
	}
	*p = append(*p, Problem{1 + bytes.Count(text[:at], []byte("\n")), 1 + utf8.RuneCount(text[begin():at]),
		"syntax", "syntax error: " + place().ReplaceAllString(err.Error(), "")})
}

func (p *problems) walk(text []byte) error {
	w := &walk{problems: p, text: []byte(string(text) + padding), size: len(text), line: 1}
	defer w.skip() // perhaps to a tab
	return parse(bytes.NewReader(text), w.document)
}

// oneByte gives the bytes one by one.
type oneByte struct{ *bytes.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// parse reads the documents of a text up to the end or to an error, which it returns.
func parse(r io.Reader, document func(root *yaml.Node)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	for d := yaml.NewDecoder(r); ; {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			return err
		}
		document(doc.Content[0])
	}
}

func (w *walk) document(root *yaml.Node) {
	for w.skip(); w.text[w.pos] == '%' || bytes.HasPrefix(w.text[w.pos:], []byte("...")); w.skip() {
		w.take(bytes.IndexByte(w.text[w.pos:], '\n'))
	}
	if bytes.HasPrefix(w.text[w.pos:], []byte("---")) {
		w.token(0, 3)
	}
	w.node(root, 0, 0)
}

// lose ends the walk when the text is not that of the nodes.
func (w *walk) lose() { w.problems, w.pos = new(problems), w.size }

// col returns the column of the position, from 0.
func (w *walk) col() int {
	if w.known < w.begin {
		w.known, w.column = w.begin, 0
	}
	w.column += utf8.RuneCount(w.text[w.known:w.pos])
	w.known = w.pos
	return w.column
}

// skip goes to what comes next. Tabs may be in strings and comments alone.
func (w *walk) skip() {
	for ; w.pos < w.size; w.pos++ {
		switch w.text[w.pos] {
		case ' ', '\r':
		case '\n':
			w.line, w.begin = w.line+1, w.pos+1
		case '#':
			w.pos += bytes.IndexByte(w.text[w.pos:], '\n') - 1
		case '\t':
			w.add(w.line, w.col()+1, "syntax", `syntax error: found character '\t' that cannot start any token`)
			w.lose()
			return
		default:
			return
		}
	}
}

// take goes over some bytes.
func (w *walk) take(n int) {
	n = min(n, w.size-w.pos)
	if i := bytes.LastIndexByte(w.text[w.pos:w.pos+n], '\n'); i >= 0 {
		w.line += bytes.Count(w.text[w.pos:w.pos+n], []byte("\n"))
		w.begin = w.pos + i + 1
	}
	w.pos += n
	w.end, w.endLine = w.pos, w.line
}

// token goes over some bytes, which are expected in a column if they begin their line.
func (w *walk) token(want, n int) {
	if w.line > w.seen {
		if w.indent = w.col(); w.indent != want {
			w.add(w.line, w.indent+1, "indentation", "wrong indentation: expected %d but found %d", want, w.indent)
		}
	}
	w.take(n)
	w.seen = w.line
}

// indicator goes over a byte, which has to come next.
func (w *walk) indicator(c byte, want int) {
	if w.skip(); w.text[w.pos] != c {
		w.lose()
	}
	w.token(want, 1)
}

// indented returns the column of what comes next if it is indented as it should be in something in another column.
func (w *walk) indented(column int) int {
	if w.step == 0 {
		w.step = w.col() - column
	}
	return column + w.step
}

// after goes to what comes next, and checks the spaces before it if it is in the same line.
func (w *walk) after(rule, what string, least, most int) {
	w.skip()
	if n := w.pos - w.end; w.line == w.endLine && n > most {
		w.add(w.line, w.col(), rule, "too many spaces %s", what)
	} else if w.line == w.endLine && n < least {
		w.add(w.line, w.col()+1, rule, "too few spaces %s", what)
	}
}

// before checks that there are no spaces before the position.
func (w *walk) before(rule, what string) {
	if w.line == w.endLine && w.pos > w.end {
		w.add(w.line, w.col(), rule, "too many spaces %s", what)
	}
}

// node goes over a value, which is expected in a column if it begins its line, and is in a block collection in another one.
func (w *walk) node(n *yaml.Node, want, block int) {
	w.skip()
	w.properties(n, want)
	switch flow := n.Style&yaml.FlowStyle != 0; {
	case n.Kind == yaml.AliasNode:
		w.token(want, 1+len(n.Value))
	case n.Kind == yaml.ScalarNode:
		w.scalar(n, want, block)
	case flow:
		w.flow(n, want)
	case n.Kind == yaml.SequenceNode:
		at := w.col()
		for _, item := range n.Content {
			w.indicator('-', want)
			w.after("hyphens", "after hyphen", 0, 1)
			if want = w.col(); w.line > w.endLine && want != at && !empty(item) {
				want = w.indented(at)
			}
			w.node(item, want, at)
			want = at
		}
	default:
		w.token(want, 0)
		at, names := w.col(), map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.pair(n.Content[i], n.Content[i+1], at, at, names)
		}
	}
}

// properties goes over the anchor and the tag of a value.
func (w *walk) properties(n *yaml.Node, want int) {
	for n.Anchor != "" && w.text[w.pos] == '&' || n.Style&yaml.TaggedStyle != 0 && w.text[w.pos] == '!' {
		w.token(want, bytes.IndexAny(w.text[w.pos:], " \t\r\n,[]{}"))
		w.skip()
	}
}

// pair goes over a key and its value in a mapping whose keys are in a column.
func (w *walk) pair(k, v *yaml.Node, at, block int, names map[string]bool) {
	w.skip()
	explicit, want := w.text[w.pos] == '?' && strings.IndexByte(" \t\r\n", w.text[w.pos+1]) >= 0, at
	if explicit {
		w.token(at, 1)
		if w.after("colons", "after question mark", 0, 1); w.line > w.seen && !empty(k) {
			want = w.indented(at)
		}
	}
	if k.Kind == yaml.ScalarNode && !empty(k) && w.text[w.pos] != '&' && w.text[w.pos] != '!' {
		if names[k.Value] && k.Value != "<<" {
			w.add(w.line, w.col()+1, "key-duplicates", "duplication of key \"%s\" in mapping", k.Value)
		}
		names[k.Value] = true
	}
	w.node(k, want, block)
	if w.skip(); w.text[w.pos] != ':' { // which an empty value may lack
		return
	}
	w.before("colons", "before colon")
	w.token(at, 1)
	w.after("colons", "after colon", 0, 1)
	if w.line == w.endLine || empty(v) {
		w.properties(v, at)
	}
	if empty(v) {
		return
	}
	if explicit || w.line > w.endLine && w.col() != at { // in the same column is a sequence
		at = w.indented(at)
	}
	w.node(v, at, block)
}

// flow goes over "[...]", "{...}" or a pair in the former that has no braces.
func (w *walk) flow(n *yaml.Node, want int) {
	rule, what, end, step, names := "brackets", "inside brackets", byte(']'), 1, map[string]bool{}
	if n.Kind == yaml.MappingNode {
		if len(n.Content) > 0 && (w.text[w.pos] != '{' || n.Line == n.Content[0].Line && n.Column == n.Content[0].Column) {
			w.pair(n.Content[0], n.Content[1], want, 0, names)
			return
		}
		rule, what, end, step = "braces", "inside braces", '}', 2
	}
	w.token(want, 1)
	outer := w.indent
	if w.skip(); w.text[w.pos] == end {
		what = "inside empty " + rule
	}
	w.after(rule, what, 0, 0)
	at := w.col()
	if w.line > w.endLine {
		at = w.indented(outer)
	}
	for i := 0; i < len(n.Content); i += step {
		if step == 1 {
			w.node(n.Content[i], at, 0)
		} else {
			w.pair(n.Content[i], n.Content[i+1], at, 0, names)
		}
		if w.skip(); w.text[w.pos] == ',' {
			if w.before("commas", "before comma"); w.line > w.endLine {
				w.add(w.line, max(1, w.col()), "commas", "too many spaces before comma")
			}
			w.token(at, 1)
			w.after("commas", "after comma", 1, 1)
		}
	}
	if len(n.Content) > 0 {
		w.before(rule, what)
	}
	w.indicator(end, outer)
}

// empty reports whether a value has no text but perhaps an anchor and a tag.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style&^yaml.TaggedStyle == 0
}

// scalar goes over a string, a number or the like.
func (w *walk) scalar(n *yaml.Node, want, block int) {
	length, quoted := 0, n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	switch rest := w.text[w.pos:]; {
	case n.Value == "" && quoted: // a line does not begin with it
		w.take(2)
		fallthrough
	case empty(n):
		return
	case quoted:
		quote := w.text[w.pos]
		for length = 1; length+1 < len(rest) && (rest[length] != quote || quote == '\'' && rest[length+1] == '\''); length++ {
			if c := rest[length]; c == quote || c == '\\' && quote == '"' {
				length++
			}
		}
		length++
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0: // up to the last line that is indented more
		n := 0
		for line := range bytes.Lines(rest) {
			words := bytes.TrimSpace(line)
			if n > 0 && len(words) > 0 && bytes.Index(line, words) <= block {
				break
			}
			if n += len(line); len(words) > 0 {
				length = n - len(line) + len(bytes.TrimRight(line, "\r\n"))
			}
		}
	case bytes.HasPrefix(rest, []byte(n.Value)) && !strings.Contains(n.Value, "\t"):
		length = len(n.Value)
	default: // between words there can be other spaces
		for _, word := range strings.FieldsFunc(n.Value, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }) {
			length = len(rest) - len(bytes.TrimLeft(rest[length:], " \r\n"))
			if !bytes.HasPrefix(rest[length:], []byte(word)) {
				w.take(length)
				w.skip() // perhaps to a tab
				w.lose()
				return
			}
			length += len(word)
		}
	}
	w.token(want, length)
}
