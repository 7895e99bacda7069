package canon

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// convertYAML splits and converts a stream of one document.
func convertYAML(stream string, warn func(int, string)) (string, error) {
	s := NewSplitter(strings.NewReader(stream), Limits{})
	d, err := s.Next()
	if err != nil {
		return "", err
	}
	c := Converter{Warn: warn}
	out, err := c.Append(nil, d)
	return string(out), err
}

func TestHostileInputMeetsALimit(t *testing.T) {
	levels := func(n, width int, format, item string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "l0: &l0 {a: b}\n")
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, format, i, i, strings.Repeat(fmt.Sprintf(item, i-1), width))
		}
		return b.String()
	}
	tests := map[string]struct {
		doc  string
		what string
	}{
		"alias bomb of nodes": {levels(9, 9, "l%d: &l%d [%s]\n", "*l%d,"), "alias expansion"},
		"alias bomb of bytes": {"a: &a " + strings.Repeat("x", 200_000) + "\nb:\n" + strings.Repeat("- *a\n", 3000),
			"alias expansion"},
		"merge key bomb":        {levels(24, 2, "l%d: &l%d {<<: [%s]}\n", "*l%d,"), "alias expansion"},
		"alias within itself":   {"a: &a [*a]\n", "alias expansion"},
		"deep flow in YAML":     {"a: " + strings.Repeat("[", 9990) + strings.Repeat("]", 9990) + "\n", "depth"},
		"deeper flow in YAML":   {"a: " + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "\n", "depth"},
		"deep blocks in YAML":   {strings.Repeat("- ", 9990) + "a\n", "depth"},
		"deep JSON":             {`{"a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "}", "depth"},
		"101 levels":            {strings.Repeat("- ", 101) + "a\n", "depth"},
		"101 levels in JSON":    {`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "depth"},
		"a million flow values": {"&x [" + strings.Repeat("a,", 1_000_000) + "]\n", "nodes"},
		"a document of 35 MiB":  {strings.Repeat("a: b\n", 7<<20), "document size"},
		"a string of 33 MiB":    {`{"a":"` + strings.Repeat("x", 33<<20), "document size"},
		"deep aliases": {func() string {
			var b strings.Builder
			b.WriteString("- &l0 [a]\n")
			for i := 1; i < 110; i++ {
				fmt.Fprintf(&b, "- &l%d [*l%d]\n", i, i-1)
			}
			return b.String()
		}(), "depth"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := convertYAML(test.doc, nil)
			var limit *LimitError
			if !errors.As(err, &limit) || limit.What != test.what {
				t.Fatalf("error %v, want one of %s", err, test.what)
			}
			runtime.ReadMemStats(&after)
			t.Logf("%v after %v and %d MB of allocations", err, time.Since(start),
				(after.TotalAlloc-before.TotalAlloc)>>20)
			if !strings.Contains(test.what, "size") && after.TotalAlloc-before.TotalAlloc > 100<<20 {
				t.Errorf("%d MB allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
			}
		})
	}
}

func TestTheDepthLimitIsReachable(t *testing.T) {
	for _, doc := range []string{
		strings.Repeat("- ", 100) + "a\n",
		strings.Repeat("[", 100) + "a" + strings.Repeat("]", 100) + "\n",
		`{"a":` + strings.Repeat("[", 99) + `"a"` + strings.Repeat("]", 99) + "}",
	} {
		if _, err := convertYAML(doc, nil); err != nil {
			t.Errorf("%.20s: %v", doc, err)
		}
	}
}

func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	for name, doc := range map[string]string{
		"invalid YAML":           "a: b\nc: \xff\n",
		"invalid JSON":           "{\"a\":\"\xff\"}",
		"overlong":               "a: \xc0\xaf\n",
		"surrogate in UTF-8":     "a: \xed\xa0\x80\n",
		"lone surrogate":         `{"a":"\ud800"}`,
		"lone low surrogate":     `{"a":"\udc00x"}`,
		"lone surrogate in YAML": "a: \"\\ud800\"\n",
		"NUL in YAML":            "a: b\x00\n",
		"NUL in JSON":            "{\"a\":\"\x00\"}",
		"UTF-16 little":          "\xff\xfea\x00:\x00 \x00b\x00",
		"UTF-16 big":             "\xfe\xff\x00a\x00:\x00 \x00b",
		"UTF-16 without a mark":  "a\x00:\x00 \x00b\x00",
		"bell":                   "a: \x07\n",
		"noncharacter":           "a: x\ufffey\n",
	} {
		var syntax *SyntaxError
		if got, err := convertYAML(doc, nil); !errors.As(err, &syntax) || len(err.Error()) > 120 {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
	}
}

func TestSyntaxErrorsHaveTheLibrarysWordsAndTheLine(t *testing.T) {
	tests := map[string]string{
		"schema: olm.package\n  name: x\n: :\n": "yaml: line 2: mapping values are not allowed in this context",
		"a: b\n\tc: d\n":                        "yaml: line 2: found a tab character that violates indentation",
		`{"schema":"olm.package","name":"x"`:    "json: line 1, column 35: unexpected EOF",
		"{\"a\": 1,\n \"b\" 2}":                 "json: line 2, column 6: invalid character '2' after object key",
		"a: *b\n":                               "yaml: unknown anchor 'b' referenced",
		"~: a\n":                                "yaml: unsupported map key of type: null",
		"[a]: b\n":                              "yaml: invalid map key: a collection",
		"a: .inf\n":                             "yaml: unsupported value: +Inf",
		"a: .NaN\n":                             "yaml: unsupported value: NaN",
		"a: !!int x\n":                          "yaml: cannot decode !!str `x` as a !!int",
		"a: b\n--- c\n":                         "yaml: line 2: invalid Yaml document separator: c",
		"a: !!binary \"*\"\n":                   "yaml: !!binary value contains invalid base64 data",
	}
	for doc, want := range tests {
		_, err := convertYAML(doc, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", doc, err, want)
		}
	}
	var syntax *SyntaxError
	if _, err := convertYAML(`{"a"`, nil); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &syntax) {
		t.Errorf("%v", err)
	} else if line, column, text := syntax.Place(7); line != 7 || column != 5 || text != "json: unexpected EOF" {
		t.Errorf("%d:%d: %s", line, column, text)
	}
}

func TestWarnings(t *testing.T) {
	for doc, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":                `3: duplicate key "a": the last one counts; {"a":3,"b":2}`,
		"x:\n- yes: 1\n  'true': 2\n":       `3: duplicate key "true": the last one counts; {"x":[{"true":2}]}`,
		"{\"a\":{\"b\":1,\n\"\\u0062\":2}}": `2: duplicate key "b": the last one counts; {"a":{"b":2}}`,
		"{a: b}\n{c: d}\n":                  `2: text behind the end of the YAML document is ignored; {"a":"b"}`,
		"x: &x {a: 1}\nz: {<<: *x, a: 2}\n": `{"x":{"a":1},"z":{"a":2}}`,
	} {
		got := ""
		out, err := convertYAML(doc, func(line int, msg string) { got += fmt.Sprintf("%d: %s; ", line, msg) })
		if got += out; err != nil || got != want {
			t.Errorf("%q: %v\n got %s\nwant %s", doc, err, got, want)
		}
	}
}

func TestLocate(t *testing.T) {
	yaml := "a:\n- b: 1\n  c:\n    d: x\n- e\n\"no\": 1\nno: 2\nf: &f\n  g: 1\nh:\n  <<: *f\n"
	json := "{\"a\":[\n{\"b\":1,\n\"c\":{\"d\":\n\"]\"}},\n\"e\"],\n\"b\":\n3}"
	tests := []struct {
		json bool
		path []any
		line int
	}{
		{false, nil, 1}, {false, []any{"a", 0, "c", "d"}, 4}, {false, []any{"a", 1}, 5}, {false, []any{"a", 2}, 0},
		{false, []any{"no"}, 6},
		{false, []any{"false"}, 7}, {false, []any{"h", "g"}, 9}, {false, []any{"x"}, 0}, {false, []any{"a", "b"}, 0},
		{true, nil, 1}, {true, []any{"a", 0, "c", "d"}, 4}, {true, []any{"a", 1}, 5}, {true, []any{"b"}, 7},
		{true, []any{"a", 2}, 0}, {true, []any{"x"}, 0}, {true, []any{"a", "b"}, 0},
	}
	for _, test := range tests {
		doc := yaml
		if test.json {
			doc = json
		}
		if line, ok := NewLocator([]byte(doc), test.json).Line(test.path...); ok != (test.line > 0) || ok && line != test.line {
			t.Errorf("%v: line %d, %v; want %d", test.path, line, ok, test.line)
		}
	}
}
