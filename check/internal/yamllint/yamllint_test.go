package yamllint_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/internal/yamllint"
)

func lint(text string) string {
	var all []string
	for _, p := range yamllint.Lint([]byte(text)) {
		all = append(all, fmt.Sprintf("%d:%d %s (%s)", p.Line, p.Column, p.Message, p.Rule))
	}
	return strings.Join(all, "\n")
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                       {"", ""},
		"one line break":                {"\n", ""},
		"clean":                         {"---\na: 1\nb:\n- c\n- d: [e, {f: g}]\nh:\n  - i\n", ""},
		"a byte order mark":             {"\ufeffa: 1\n", ""},
		"a long line":                   {"a: " + strings.Repeat("b ", 200) + "c\n", ""},
		"braces":                        {"{ a: b}\n", "1:2 too many spaces inside braces (braces)"},
		"empty braces":                  {"a: { }\n", "1:5 too many spaces inside empty braces (braces)"},
		"brackets":                      {"[a ]\n", "1:3 too many spaces inside brackets (brackets)"},
		"colons":                        {"a :  b\n", "1:2 too many spaces before colon (colons)\n1:5 too many spaces after colon (colons)"},
		"question marks":                {"?  a\n: b\n", "1:3 too many spaces after question mark (colons)"},
		"commas":                        {"[a,b ,  c]\n", "1:4 too few spaces after comma (commas)\n1:5 too many spaces before comma (commas)\n1:8 too many spaces after comma (commas)"},
		"a comma that begins a line":    {"[\n  a\n  , b\n]\n", "3:2 too many spaces before comma (commas)"},
		"empty lines":                   {"\na: 1\n\n\n\nb: 2\n\n", "1:1 too many blank lines (1 > 0) (empty-lines)\n5:1 too many blank lines (3 > 2) (empty-lines)\n7:1 too many blank lines (1 > 0) (empty-lines)"},
		"hyphens":                       {"-  a\n", "1:3 too many spaces after hyphen (hyphens)"},
		"indentation":                   {"a:\n  b: 1\nc:\n   d: 1\n", "4:4 wrong indentation: expected 2 but found 3 (indentation)"},
		"sequences indented or not":     {"a:\n- b\nc:\n  - d\ne:\n   - f\n", "6:4 wrong indentation: expected 2 but found 3 (indentation)"},
		"what anchors and tags are of":  {"a: &x\n  b: !!str\nc: !!map\n    d: &y e\n&z f: *y\ng: &n\nh: 1\n", "4:5 wrong indentation: expected 2 but found 4 (indentation)"},
		"a pair in brackets":            {"[a: b, {c: d}: e, ? f : g]\n", "1:22 too many spaces before colon (colons)"},
		"a closing bracket":             {"a:\n  b: [\n    c\n    ]\n", "4:5 wrong indentation: expected 2 but found 4 (indentation)"},
		"strings of several lines":      {"a: b\n c\n\n d\ne: 'f''\n   g'\nh: \"\\\"\n i\"\nj: |2-\n    k\n\n   l\nm:  n\n", "13:4 too many spaces after colon (colons)"},
		"keys twice":                    {"a: 1\n'a': 2\n\"\\x61\": 3\nb: {a: 1, a: 2}\n", "2:1 duplication of key \"a\" in mapping (key-duplicates)\n3:1 duplication of key \"a\" in mapping (key-duplicates)\n4:11 duplication of key \"a\" in mapping (key-duplicates)"},
		"merged keys":                   {"x: &x {}\na: {<<: *x, <<: *x}\n", ""},
		"no line break at the end":      {"é: 1", "1:5 no new line character at the end of file (new-line-at-end-of-file)"},
		"line breaks of DOS":            {"a: 1\r\nb:\r\n  c:  d\r\n", "1:5 wrong new line character: expected \\n (new-lines)\n3:6 too many spaces after colon (colons)"},
		"trailing spaces":               {"a: 1 \n  \nb: 1\n", "1:5 trailing spaces (trailing-spaces)\n2:1 trailing spaces (trailing-spaces)"},
		"in a text":                     {"a: |\n  b  \n", "2:4 trailing spaces (trailing-spaces)"},
		"a tab for indentation":         {"a:\n\tb: 1\n", "2:1 syntax error: found character that cannot start any token (syntax)"},
		"a tab between values":          {"a: 1\nb:\t2\nc:  3\n", "2:3 syntax error: found character '\\t' that cannot start any token (syntax)"},
		"a tab in a plain string":       {"a: b\tc\n", "1:5 syntax error: found character '\\t' that cannot start any token (syntax)"},
		"tabs where they may be":        {"a: \"\t\" #\tb\nc: |\n  d\te\n  \tf\n", ""},
		"an alias of nothing":           {"a: 1\nb: *c\n", "3:1 syntax error: unknown anchor 'c' referenced (syntax)"},
		"a value in a value":            {"a:  1\nb: c: d\ne:  1\nf: 1 \n", "1:4 too many spaces after colon (colons)\n2:5 syntax error: mapping values are not allowed in this context (syntax)\n4:5 trailing spaces (trailing-spaces)"},
		"an open bracket":               {"a: [b\n", "2:1 syntax error: did not find expected ',' or ']' (syntax)"},
		"two documents":                 {"%YAML 1.1\n---\na: 1\n...\n---\na:  2\n", "6:4 too many spaces after colon (colons)"},
		"a control character":           {"a: 1\nb: \x01\n", "2:4 syntax error: control characters are not allowed (syntax)"},
		"not UTF-8":                     {"a: \xff\n", "1:4 syntax error: invalid leading UTF-8 octet (syntax)"},
		"disabled":                      {"# yamllint disable rule:colons\na:  1 \n# yamllint enable\nb:  1\n", "2:6 trailing spaces (trailing-spaces)\n4:4 too many spaces after colon (colons)"},
		"disabled for a line":           {"a:  1  # yamllint disable-line rule:colons\n# yamllint disable-line\nb:  1 \nc:  1\n", "4:4 too many spaces after colon (colons)"},
		"disabled but for one rule":     {"# yamllint disable\n# yamllint enable rule:colons\na:  1 \n", "3:4 too many spaces after colon (colons)"},
		"a file that is left out":       {"# yamllint disable-file\na:  1 \n", ""},
		"nested too deeply":             {strings.Repeat("[", 20_000) + "\n", "1:10001 syntax error: exceeded max depth of 10000 (syntax)"},
		"too many nodes":                {strings.Repeat("a:  1\n", 500_000) + "b: 1 \n", "500001:5 trailing spaces (trailing-spaces)"},
		"a mapping with very many keys": {strings.Repeat("a: 1\n", 3), "2:1 duplication of key \"a\" in mapping (key-duplicates)\n3:1 duplication of key \"a\" in mapping (key-duplicates)"},
	} {
		if got := lint(c.text); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// The answers are those of yamllint 1.29.0 with PyYAML 6.0 for files of operators, to most of which a slip is added. Up to a
// syntax error, of which only the line is the same.
func TestRecordedAnswers(t *testing.T) {
	f, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c struct {
			Text     string
			Problems []yamllint.Problem
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		got := yamllint.Lint([]byte(c.Text))
		if i := slices.IndexFunc(got, func(p yamllint.Problem) bool { return p.Rule == "syntax" }); i >= 0 {
			failed := yamllint.Problem{Line: got[i].Line, Rule: "syntax"}
			got = append(slices.DeleteFunc(got, func(p yamllint.Problem) bool { return p.Line >= failed.Line }), failed)
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.Problems) {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.Text, got, c.Problems)
		}
	}
	if n < 60 {
		t.Errorf("read %d texts", n)
	}
}

// Hostile texts are read to their end or refused, in time and space that grow with their size.
func TestHostileTexts(t *testing.T) {
	const size = 256 << 10
	for _, part := range []string{"[", "- ", "? ", "a: ", "{a: ", "[]", "a,", "\n", " ", "\t", "\"", "'", "\"\\", "|\n", "#", "&a ", "!a ", "%", "---\n", "a:  b \n",
		"é", "\u2028", "\ufeff", "a:  # yamllint disable-line\n", "-\n", "\r", "- a\n# b\n", "[],", "a: b\n\n\n"} {
		for _, text := range []string{strings.Repeat(part, size/len(part)), "[" + strings.Repeat(part, size/len(part)), "a:\n - " + strings.Repeat(part, size/len(part))} {
			if n := len(yamllint.Lint([]byte(text))); n > 10_001 {
				t.Errorf("%.10q: %d problems", text, n)
			}
		}
	}
}

func FuzzLint(f *testing.F) {
	for _, text := range []string{"a: [b, {c: d}]\n- |\n  e\n? f\n: 'g'\n--- !t &x\n", "a: &x !!str\nb: *x\n- - c\n", "a:\n- b: \"c\\\"\"\n  d: >-\n    x\n\n     y\n",
		"[a: b, ? c : d, 'e': f, {g: h}: i]\n", "%YAML 1.1\n---\na\n...\n---\nb\tc"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range yamllint.Lint(text) {
			if p.Line < 1 || p.Column < 0 || p.Line > lines || strings.Contains(p.Message, "runtime error") {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}
