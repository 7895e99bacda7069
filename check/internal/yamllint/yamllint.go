// Package yamllint finds the errors that yamllint reports in YAML with its default configuration, in which sequences may be
// indented in mappings or not, and long lines are no errors.
package yamllint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Problem is an error in a text. Line and Column count from 1, the column in characters.
type Problem struct {
	Line, Column  int
	Rule, Message string
}

// maxProblems is how many problems of a text are returned.
const maxProblems = 10_000

var rules = []string{"braces", "brackets", "colons", "commas", "empty-lines", "hyphens", "indentation", "key-duplicates",
	"new-line-at-end-of-file", "new-lines", "trailing-spaces"}

// Lint returns the problems of a text, sorted by place: the first 10,000. A syntax error has the rule "syntax"; what comes
// after it is judged as far as it can be read.
func Lint(text []byte) []Problem {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if rest, ok := bytes.CutPrefix(bytes.TrimRight(first, " \t\r\v\f"), []byte("#")); ok && string(bytes.TrimLeft(rest, " \t")) == "yamllint disable-file" {
		return nil
	}
	ascii, bad := characters(text)
	if bad != nil {
		return []Problem{*bad}
	}
	var found []Problem
	report := func(line, column int, rule, format string, args ...any) {
		if len(found) < maxProblems {
			found = append(found, Problem{line, column, rule, fmt.Sprintf(format, args...)})
		}
	}
	s := scan(text, ascii)
	s.spacing(report)
	p := &parser{scanner: s, report: func(at mark, rule, format string, args ...any) {
		report(int(at.line)+1, int(at.column)+1, rule, format, args...)
	}}
	p.parse()
	last := lines(text, report)
	found = slices.DeleteFunc(found, func(f Problem) bool { return f.Line > last }) // counted by line breaks of other kinds
	if bytes.Contains(text, []byte("# yamllint ")) {
		found = s.enabled(found)
	}
	if p.failed != nil {
		// The first problem after it, and not to the left of it, is taken for the same one.
		slices.SortStableFunc(found, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(ofLine(a), ofLine(b)), cmp.Compare(a.Column, b.Column))
		})
		if i := slices.IndexFunc(found, func(f Problem) bool { return p.failed.Line <= f.Line && p.failed.Column <= f.Column }); i >= 0 {
			found = slices.Delete(found, i, i+1)
		}
		found = append(found, *p.failed)
	}
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

// ofLine returns the place of a problem among the rules on whole lines; 0 of the others, which come before.
func ofLine(p Problem) int {
	return 1 + slices.Index([]string{"empty-lines", "new-line-at-end-of-file", "new-lines", "trailing-spaces"}, p.Rule)
}

// characters reports whether a text has ASCII alone, and the first character that YAML does not allow.
func characters(text []byte) (ascii bool, bad *Problem) {
	ascii = true
	for i := 0; i < len(text); {
		c, n := text[i], 1
		ok := c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r'
		if c >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRune(text[i:])
			ascii = false
			ok = (r != utf8.RuneError || n > 1) && (r >= 0xa0 || r == 0x85) && r != 0xfffe && r != 0xffff
		}
		if !ok {
			begin := bytes.LastIndexByte(text[:i], '\n') + 1
			return false, &Problem{1 + bytes.Count(text[:i], []byte("\n")), 1 + utf8.RuneCount(text[begin:i]), "syntax",
				fmt.Sprintf("syntax error: special characters are not allowed: %q", text[i:i+n])}
		}
		i += n
	}
	return ascii, nil
}

// spacing checks the white space around the indicators of YAML.
func (s *scanner) spacing(report func(line, column int, rule, format string, args ...any)) {
	n := len(s.tokens)
	if s.unfinished {
		n = max(0, s.certain-2)
	}
	var prev token
	for i, t := range s.tokens[:n] {
		next := token{start: mark{line: -1}}
		if i+1 < len(s.tokens) {
			next = s.tokens[i+1]
		}
		line := int(t.start.line) + 1
		after := func(rule, what string, least, most int32) {
			if next.start.line != t.end.line {
				return
			}
			if spaces := next.start.offset - t.end.offset; spaces > most {
				report(line, int(next.start.column), rule, "too many spaces %s", what)
			} else if spaces < least {
				report(line, int(next.start.column)+1, rule, "too few spaces %s", what)
			}
		}
		before := func(rule, what string) {
			if i > 0 && prev.end.line == t.start.line && (prev.end.offset == 0 || s.text[prev.end.offset-1] != '\n') && t.start.offset > prev.end.offset {
				report(line, int(t.start.column), rule, "too many spaces %s", what)
			}
		}
		switch t.kind {
		case flowMappingStart:
			if next.kind == flowMappingEnd {
				after("braces", "inside empty braces", 0, 0)
			} else {
				after("braces", "inside braces", 0, 0)
			}
		case flowMappingEnd:
			if prev.kind != flowMappingStart {
				before("braces", "inside braces")
			}
		case flowSequenceStart:
			if next.kind == flowSequenceEnd {
				after("brackets", "inside empty brackets", 0, 0)
			} else {
				after("brackets", "inside brackets", 0, 0)
			}
		case flowSequenceEnd:
			if prev.kind != flowSequenceStart {
				before("brackets", "inside brackets")
			}
		case value:
			before("colons", "before colon")
			after("colons", "after colon", 0, 1)
		case key:
			if t.start.offset < t.end.offset {
				after("colons", "after question mark", 0, 1)
			}
		case flowEntry:
			if i > 0 && prev.end.line < t.start.line {
				report(line, max(1, int(t.start.column)), "commas", "too many spaces before comma")
			} else {
				before("commas", "before comma")
			}
			after("commas", "after comma", 1, 1)
		case blockEntry:
			after("hyphens", "after hyphen", 0, 1)
		}
		prev = t
	}
}

// lines checks the ends of lines and the empty ones. It returns the number of lines.
func lines(text []byte, report func(line, column int, rule, format string, args ...any)) int {
	blank := 0 // line breaks before an empty line
	for line, start := 1, 0; ; line++ {
		end, last := bytes.IndexByte(text[start:], '\n'), false
		if end < 0 {
			end, last = len(text), true
		} else {
			end += start
		}
		next := end + 1
		if end > start && end < len(text) && text[end-1] == '\r' {
			end--
		}
		if line == 1 && !last && text[end] != '\n' {
			report(1, 1+utf8.RuneCount(text[:end]), "new-lines", `wrong new line character: expected \n`)
		}
		if kept := len(bytes.TrimRight(text[start:end], " \t\n\r\v\f")); start+kept < end && (text[start+kept] == ' ' || text[start+kept] == '\t') {
			report(line, 1+utf8.RuneCount(text[start:start+kept]), "trailing-spaces", "trailing spaces")
		}
		if last {
			if end > start {
				report(line, 1+utf8.RuneCount(text[start:end]), "new-line-at-end-of-file", "no new line character at the end of file")
			}
			return line
		}
		if start == end {
			blank++
			most, n := 2, blank
			if n == line {
				most = 0 // at the beginning
			}
			if next == len(text) {
				most = 0 // at the end
			}
			only := start == 0 && next == len(text) // which is fine
			if !only && n > most && !bytes.HasPrefix(text[next:], text[end:next]) {
				report(line, 1, "empty-lines", "too many blank lines (%d > %d)", n, most)
			}
		} else {
			blank = 0
		}
		start = next
	}
}

// enabled leaves out the problems that comments such as "# yamllint disable rule:colons" disable.
func (s *scanner) enabled(found []Problem) []Problem {
	type change struct {
		line  int
		verb  string
		rules []string
	}
	var changes []change
	once := map[int][]string{} // the rules that are disabled for a line
	for i, t := range s.tokens {
		if s.unfinished && i+2 >= s.certain {
			break
		}
		to := len(s.text)
		if i+1 < len(s.tokens) {
			next := s.tokens[i+1]
			if t.end.line == next.start.line && t.kind != streamStart && next.kind != streamEnd {
				continue
			}
			to = int(next.start.offset)
		}
		for n, line := range strings.Split(string(s.text[t.end.offset:max(to, int(t.end.offset))]), "\n") {
			at := strings.IndexByte(line, '#')
			if at < 0 {
				continue
			}
			words := strings.Split(strings.TrimRight(line[at:], " \t\r"), " ")
			if len(words) < 3 || words[0] != "#" || words[1] != "yamllint" {
				continue
			}
			c := change{int(t.end.line) + n + 1, words[2], nil}
			for _, word := range words[3:] {
				rule, ok := strings.CutPrefix(word, "rule:")
				if !ok || rule == "" {
					c.verb = ""
				}
				c.rules = append(c.rules, rule)
			}
			if c.rules == nil {
				c.rules = rules
			}
			inline := t.kind != streamStart && n == 0 && s.text[t.end.offset-1] != '\n'
			if c.verb == "disable-line" && inline {
				once[c.line] = append(once[c.line], c.rules...)
			} else if c.verb == "disable-line" {
				once[c.line+1] = append(once[c.line+1], c.rules...)
			} else {
				changes = append(changes, c)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	disabled, next := map[string]bool{}, 0
	return slices.DeleteFunc(found, func(f Problem) bool {
		for ; next < len(changes) && changes[next].line <= f.Line; next++ {
			for _, rule := range changes[next].rules {
				switch changes[next].verb {
				case "disable":
					disabled[rule] = true
				case "enable":
					delete(disabled, rule)
				}
			}
		}
		return disabled[f.Rule] || slices.Contains(once[f.Line], f.Rule)
	})
}
