package yamllint_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/check/internal/yamllint"
)

func lint(text string) []string {
	var all []string
	for _, p := range yamllint.Lint([]byte(text)) {
		all = append(all, fmt.Sprintf("%d:%d %s (%s)", p.Line, p.Column, p.Message, p.Rule))
	}
	return all
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                       {"", ""},
		"one line break":                {"\n", ""},
		"clean":                         {"---\na: 1\nb:\n- c\n- d: [e, {f: g}]\nh:\n  - i\n", ""},
		"a long line":                   {"a: " + strings.Repeat("b ", 200) + "c\n", ""},
		"braces":                        {"{ a: b}\n", "1:2 too many spaces inside braces (braces)"},
		"empty braces":                  {"a: { }\n", "1:5 too many spaces inside empty braces (braces)"},
		"brackets":                      {"[a ]\n", "1:3 too many spaces inside brackets (brackets)"},
		"colons":                        {"a :  b\n", "1:2 too many spaces before colon (colons)\n1:5 too many spaces after colon (colons)"},
		"question marks":                {"?  a\n: b\n", "1:3 too many spaces after question mark (colons)"},
		"commas":                        {"[a,b ,  c]\n", "1:4 too few spaces after comma (commas)\n1:5 too many spaces before comma (commas)\n1:8 too many spaces after comma (commas)"},
		"empty lines":                   {"\na: 1\n\n\n\nb: 2\n\n", "1:1 too many blank lines (1 > 0) (empty-lines)\n5:1 too many blank lines (3 > 2) (empty-lines)\n7:1 too many blank lines (1 > 0) (empty-lines)"},
		"hyphens":                       {"-  a\n", "1:3 too many spaces after hyphen (hyphens)"},
		"indentation":                   {"a:\n  b: 1\nc:\n   d: 1\n", "4:4 wrong indentation: expected 2 but found 3 (indentation)"},
		"sequences indented or not":     {"a:\n- b\nc:\n  - d\ne:\n   - f\n", "6:4 wrong indentation: expected 2 but found 3 (indentation)"},
		"keys twice":                    {"a: 1\n'a': 2\n\"\\x61\": 3\nb: {a: 1, a: 2}\n", "2:1 duplication of key \"a\" in mapping (key-duplicates)\n3:1 duplication of key \"a\" in mapping (key-duplicates)\n4:11 duplication of key \"a\" in mapping (key-duplicates)"},
		"merged keys":                   {"a: {<<: *x, <<: *y}\n", ""},
		"no line break at the end":      {"é: 1", "1:5 no new line character at the end of file (new-line-at-end-of-file)"},
		"line breaks of DOS":            {"a: 1\r\nb: 2\r\n", "1:5 wrong new line character: expected \\n (new-lines)"},
		"trailing spaces":               {"a: 1 \n\t\n", "1:5 trailing spaces (trailing-spaces)\n2:1 syntax error: found character '\\t' that cannot start any token (syntax)"},
		"in a text":                     {"a: |\n  b  \n", "2:4 trailing spaces (trailing-spaces)"},
		"a tab":                         {"a:\n\tb: 1\n", "2:1 syntax error: found character '\\t' that cannot start any token (syntax)"},
		"an alias of nothing":           {"a: *b\n", ""},
		"a value in a value":            {"a: b: c\n", "1:5 syntax error: mapping values are not allowed here (syntax)"},
		"an open bracket":               {"a: [b\n", "2:1 syntax error: expected ',' or ']', but got '<stream end>' (syntax)"},
		"two documents":                 {"a: 1\n---\na: 2\n", ""},
		"a control character":           {"a: 1\nb: \x01\n", `2:4 syntax error: special characters are not allowed: "\x01" (syntax)`},
		"not UTF-8":                     {"a: \xff\n", `1:4 syntax error: special characters are not allowed: "\xff" (syntax)`},
		"disabled":                      {"# yamllint disable rule:colons\na:  1 \n# yamllint enable\nb:  1\n", "2:6 trailing spaces (trailing-spaces)\n4:4 too many spaces after colon (colons)"},
		"disabled for a line":           {"a:  1  # yamllint disable-line rule:colons\n# yamllint disable-line\nb:  1 \nc:  1\n", "4:4 too many spaces after colon (colons)"},
		"disabled but for one rule":     {"# yamllint disable\n# yamllint enable rule:colons\na:  1 \n", "3:4 too many spaces after colon (colons)"},
		"a file that is left out":       {"# yamllint disable-file\na:  1 \n", ""},
		"nested too deeply":             {strings.Repeat("[", 5000), "1:252 syntax error: the text has more than 4000000 tokens, or more than 250 collections in each other (syntax)"},
		"a mapping with very many keys": {strings.Repeat("a: 1\n", 3), "2:1 duplication of key \"a\" in mapping (key-duplicates)\n3:1 duplication of key \"a\" in mapping (key-duplicates)"},
	} {
		if got := strings.Join(lint(c.text), "\n"); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// The answers are those of yamllint 1.29.0 with PyYAML 6.0 for texts that are broken in many ways.
func TestRecordedAnswers(t *testing.T) {
	f, err := os.Open("testdata/recorded.jsonl.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines, n := bufio.NewScanner(z), 0
	for ; lines.Scan(); n++ {
		var c struct {
			Text   string
			Errors []string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		got := lint(c.Text)
		slices.Sort(got)
		if !slices.Equal(got, c.Errors) {
			t.Errorf("%q: got\n%s\nwant\n%s", c.Text, strings.Join(got, "\n"), strings.Join(c.Errors, "\n"))
		}
	}
	if lines.Err() != nil || n < 3000 {
		t.Errorf("read %d texts: %v", n, lines.Err())
	}
}

// Hostile texts are read to their end or refused, in time and space that grow with their size.
func TestHostileTexts(t *testing.T) {
	const size = 256 << 10
	for _, part := range []string{"[", "- ", "? ", "a: ", "{a: ", "[]", "a,", "\n", " ", "\t", "\"", "'", "\"\\", "|\n", "#", "&a ", "!a ", "%", "---\n", "a:  b \n",
		"é", "\u2028", "\ufeff", "a:  # yamllint disable-line\n", "-\n", "\r"} {
		for _, text := range []string{strings.Repeat(part, size/len(part)), "[" + strings.Repeat(part, size/len(part)), "a:\n - " + strings.Repeat(part, size/len(part))} {
			if n := len(yamllint.Lint([]byte(text))); n > 10_001 {
				t.Errorf("%.10q: %d problems", text, n)
			}
		}
	}
}

func FuzzLint(f *testing.F) {
	f.Add([]byte("a: [b, {c: d}]\n- |\n  e\n? f\n: 'g'\n--- !t &x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range yamllint.Lint(text) {
			if p.Line < 1 || p.Column < 0 || p.Line > lines && p.Rule != "syntax" {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}
