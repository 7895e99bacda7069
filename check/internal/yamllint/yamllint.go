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

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Problem is an error in a text. Line and Column count from 1, the column in characters.
type Problem struct {
	Line, Column  int
	Rule, Message string
}

const (
	maxProblems = 10_000     // that are returned
	maxNodes    = 250_000    // of a text whose structure is checked
	padding     = "\n\n\n\n" // as many bytes as the parser reads after the place of most errors
)

// problems are those of a text.
type problems []Problem

func (p *problems) add(line, column int, rule, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, Problem{line, column, rule, fmt.Sprintf(format, args...)})
	}
}

var (
	left      = lazyregexp.New(`^#\s*yamllint disable-file\s*(\n|$)`)
	directive = lazyregexp.New(`(?m)# yamllint (disable-line|disable|enable)((?: rule:\S+)*)\s*$`)
	place     = lazyregexp.New(`^yaml: (line \d+: )?`)        // which is that of what the error is in
	early     = lazyregexp.New(`tab character|control|UTF-8`) // errors at what has been read last
	late      = lazyregexp.New(`expected (key|'-'|<doc)`)     // errors that are found some lines after their place
)

// Lint returns the problems of a text, sorted by place: the first 10,000. A syntax error, of which an alias without an anchor is
// one, has the rule "syntax"; after it only the rules on lines are checked, as in a text that may have more than 250,000 nodes.
func Lint(text []byte) []Problem {
	if left().Match(text) {
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var found problems
	found.structure(text)
	found.lines(text)
	found = enabled(text, found)
	slices.SortStableFunc(found, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return found
}

// lines checks the ends of lines and the empty ones.
func (p *problems) lines(text []byte) {
	number, blank, rest := 0, 0, text
	for line := range bytes.Lines(text) {
		number, rest = number+1, rest[len(line):]
		line, more := bytes.CutSuffix(line, []byte("\n"))
		if cut, dos := bytes.CutSuffix(line, []byte("\r")); dos && more {
			if line = cut; number == 1 {
				p.add(1, 1+utf8.RuneCount(line), "new-lines", `wrong new line character: expected \n`)
			}
		}
		if kept := bytes.TrimRight(line, " \t\n\r\v\f"); len(kept) < len(line) && (line[len(kept)] == ' ' || line[len(kept)] == '\t') {
			p.add(number, 1+utf8.RuneCount(kept), "trailing-spaces", "trailing spaces")
		}
		if blank++; len(line) > 0 {
			if blank = 0; !more {
				p.add(number, 1+utf8.RuneCount(line), "new-line-at-end-of-file", "no new line character at the end of file")
			}
			continue
		}
		most := 2
		if blank == number || len(rest) == 0 {
			most = 0
		}
		if blank > most && !bytes.HasPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n")) && (number > 1 || len(rest) > 0) {
			p.add(number, 1, "empty-lines", "too many blank lines (%d > %d)", blank, most)
		}
	}
}

// enabled leaves out the problems that comments such as "# yamllint disable rule:colons" disable, of which 100 are read.
func enabled(text []byte, found problems) problems {
	off := map[Problem]bool{}
	for _, m := range directive().FindAllSubmatchIndex(text, 100) {
		line := 1 + bytes.Count(text[:m[0]], []byte("\n"))
		alone := len(bytes.TrimSpace(text[bytes.LastIndexByte(text[:m[0]], '\n')+1:m[0]])) == 0
		verb, rules := string(text[m[2]:m[3]]), string(text[m[4]:m[5]])+" "
		for _, p := range found {
			switch {
			case p.Line < line || p.Rule == "syntax" || rules != " " && !strings.Contains(rules, " rule:"+p.Rule+" "):
			case verb != "disable-line":
				off[p] = verb == "disable"
			case !alone && p.Line == line || alone && p.Line == line+1:
				off[p] = true
			}
		}
	}
	return slices.DeleteFunc(found, func(p Problem) bool { return off[p] })
}
