package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	yamlv2 "go.yaml.in/yaml/v2"
)

func libraryMeaning(s string) (any, error) {
	var m map[string]any
	if err := yamlv2.Unmarshal([]byte("a: "+s), &m); err != nil {
		return nil, err
	}
	return m["a"], nil
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[1.0,1e400,-0,9007199254740993,true,null],"a":{}}`,
		`"\u2028 \ud83d\ude00 \/ \b \u0008 é <>&"`, "\"\u2028\u2029\x7f\"", `"\ud800"`, "\"\xff\"", ` [ ] `,
		`{"\u0061":1,"a":2}`,
		`{"a\n":1,"a\"":2,"a!":3,"` + "a\u2028" + `":4,"aé":5}`, `[1,2`, `01`, `1.`, `{"a":}`, `tru`, `nulll`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := AppendJSON(nil, doc, Limits{}, nil)
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		var v any
		wantErr := d.Decode(&v)
		if wantErr == nil {
			if _, wantErr = d.Token(); errors.Is(wantErr, io.EOF) {
				wantErr = nil
			} else if wantErr == nil {
				wantErr = errors.New("more")
			}
		}
		if err != nil {
			var limit *LimitError
			var syntax *SyntaxError
			if errors.As(err, &limit) || errors.As(err,
				&syntax) && (strings.Contains(err.Error(), "UTF-8") || strings.Contains(err.Error(), "surrogate")) {
				return
			}
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, encoding/json: %v", err, wantErr)
		}
		if err == nil && string(got) != marshal(v) {
			t.Fatalf("\n got %q\nwant %q", got, marshal(v))
		}
	})
}

var yamlSeeds = []string{
	"a: 1\nb: yes\nc: 010\nd: 0x10\ne: 1_000\nf: 1.0\ng: 9007199254740993\nh: 1e3\ni: .5\nj: 2001-01-01\nk: ~\n",
	"y: n\non: off\n1: a\n1.5: b\n? x\n: y\n", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n",
	"- a\n-  b\n- - c\n  - d\n-\n  e: f\n",
	"a:\n- b\n- c: d\n  e: f\n", "a: |\n  x\n   y\n\n  z\nb: >-\n  x\n  y\n\n  z\n   w\nc: |+\n  x\n\n",
	"a: 'it''s\n  folded\n\n  here'\nb: \"x\\ty\\\n  z\\u00e9\"\n",
	"a: b\n  c\n\n  d\n# x\ne: f # g\n", "a: [1, {b: c}, \"d\"]\nb: {}\nc: []\n", "# c\n\na:\n  # d\n  b: c\n",
	"a: !!str 1\nb: !!binary aGk=\n", "a: 1\na: 2\n",
	"\"a\": 1\n'b': 2\n", "a: |2\n    x\n  y\n", "a:\n  - b:\n      c: d\n    e:\n    - f\n  -\n  - \n  - g\n",
	"a: http://x:y\nb: a:b\nc: -1\nd: - x\n",
	"a: @x\n", "a: b: c\n", "a\n", "\"x\"\n", "- |\n x\n- >\n y\n", "a: \"\\x41\\U0001F600\\/\\_\\N\\L\\P\"\n",
	"a: -0\nb: +1\nc: 0b11\nd: 1.\ne: 1e400\nf: 08\n", "a: \t b\n", "...\na: b\n",
	"- \"~\"\n- 'null'\n- |-\n  ~\n- \"null\": '~'\n",
	"a: b\n--- c\n", "null: 1\n", ".inf: 1\n", "a: '\n  x'\n", "a:\n\n  b\n\n  c\n", "a: b\r\nc: d\r\n",
	"{a: b}\n{c: d}\n",
}

// agrees fails if the canonical JSON of a document differs, except for numbers, from the library's result.
func agrees(t *testing.T, doc []byte, got []byte, err error) {
	want, wantErr := reference(doc)
	if err != nil {
		var limit *LimitError
		if errors.As(err, &limit) || wantErr != nil || bytes.Contains(doc, []byte("null")) && bytes.Contains(doc,
			[]byte("!")) {
			return
		}
		if _, treeErr := parseTree(doc); checkText("yaml", doc) != nil || treeErr != nil && bytes.ContainsAny(doc,
			"*") {
			return
		}
		t.Fatalf("error %v, the library gives %s", err, want)
	}
	if wantErr != nil {
		if strings.Contains(wantErr.Error(), "of type: uint64") || strings.Contains(wantErr.Error(), "out of range") {
			return
		}
		t.Fatalf("the library says %v, got %s", wantErr, got)
	}
	if rounded, err := roundFloats(got); err != nil || rounded != want {
		t.Fatalf("%v\n got %s\nwant %s", err, rounded, want)
	}
}

func FuzzSlowMeansWhatTheLibrarySays(f *testing.F) {
	for _, s := range yamlSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		duplicate := false
		c := Converter{Limits: Limits{}.withDefaults(), Warn: func(int, string) { duplicate = true }}
		if checkText("yaml", doc) != nil {
			return
		}
		got, err := c.appendSlow(nil, doc, c.Limits)
		if duplicate {
			return // the library does not define which of several keys counts that are equal only as strings
		}
		agrees(t, doc, got, err)
	})
}

func FuzzSplit(f *testing.F) {
	for _, s := range yamlSeeds {
		f.Add([]byte(s + "---\n" + s))
	}
	for _, s := range []string{`{"a":"\"}{"}{"b":2} 3 "x\\" [1]`, "{\"a\":1}\n---\na: b\n---\n",
		"---\n---\na\n--- # x\nb\n---x\n", "\xef\xbb\xbf---\na: 1\n", "{a: b}\n", " \n\n {\"a\":1}x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all := func(r io.Reader) (docs []Doc, last error) {
			s := NewSplitter(r, Limits{MaxDocument: 1 << 20})
			for {
				d, err := s.Next()
				if err != nil {
					return append(docs, Doc{Line: d.Line, JSON: d.JSON}), err
				}
				d.Data = bytes.Clone(d.Data)
				docs = append(docs, d)
			}
		}
		a, aErr := all(bytes.NewReader(data))
		b, bErr := all(iotest.OneByteReader(bytes.NewReader(data)))
		if len(a) != len(b) || aErr.Error() != bErr.Error() {
			t.Fatalf("%d and %d documents; %v; %v", len(a), len(b), aErr, bErr)
		}
		for i := range a {
			if a[i].Line != b[i].Line || a[i].JSON != b[i].JSON || !bytes.Equal(a[i].Data, b[i].Data) {
				t.Fatalf("document %d: %+v and %+v", i, a[i], b[i])
			}
		}
	})
}

func FuzzMeaning(f *testing.F) {
	for _, s := range strings.Fields(
		"1 -1 +1 0x1f 0b1 0b-1 -0b1 1_0 .5 .5_ 1. 1e3 1e+3 1e400 .inf -.INF .NaN 0o17 017 089 0xffffffffffffffffff " +
			"18446744073709551615 1:30 2001-1-1 ~ Null y NO on +0x1 -0o7 1_e3 _1 0x_1 .1e5 . + - 0.1.2 0x1p3") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsFunc(s,
			func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("#:,[]{}&*!|>'\"%@`?", r) }) {
			return
		}
		got := resolveScalar(s)
		want, err := libraryMeaning(s)
		if err != nil {
			return
		}
		if g, ok := got.(float64); ok {
			w, ok := want.(float64)
			if !ok || math.Float64bits(g) != math.Float64bits(w) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Fatalf("%q: %v, the library: %v", s, got, want)
			}
			return
		}
		if got != want {
			t.Fatalf("%q: %T %v, the library: %T %v", s, got, got, want, want)
		}
	})
}

func FuzzFastEqualsSlow(f *testing.F) {
	for _, s := range yamlSeeds {
		f.Add([]byte(s))
	}
	for _, s := range []string{
		"a: \"x  \\\n   y\\ \n z\n\n w\"\n", "a: |1-\n  x\n\n   y\n", "- >+2\n    x\n\n   y\n\n\nb: c\n",
		"a:\n  b\n  c: d\n", "a: b # c\n  d\n", "- - - a\n  - b\n",
		"{\"a\": [1, \"b\\n\", {}, null, true, -1.5e3], 'c': x/y.z, d : 1}\n", "a: [\n1,\n2\n]\nb: {\n}\n",
		"a: \"é\u00a0\"\nb: é\n", "a: \u2028\n", "a: |\n   \n  x\n", "a: |\n \n  x\n\n\n", "a: >\n\n  x\n   y\n  z\n",
		"a: [b: c]\n", "a: {b}\n", "a: [1,,2]\n", "a: [1,]\n", "a: 'x\n\n\n  y  \n z'\n", "a:\n- b\n - c\n",
		"a:\n    b: c\n  d: e\n", "1.10: a\n0x1: b\n1_0: c\n", "a: -\n", "a: - b\n", "-a: b\n--- \n", "- -a\n- --\n",
		"a: b:\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		c := Converter{Limits: Limits{}.withDefaults()}
		got, ok := c.appendFast(nil, doc, c.Limits)
		if !ok {
			return
		}
		want, err := c.appendSlow(nil, doc, c.Limits)
		var limit *LimitError
		if errors.As(err, &limit) && limit.What == "nodes" {
			return
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q: %v\n fast %s\n slow %s", doc, err, got, want)
		}
		if checkText("yaml", doc) != nil {
			t.Fatalf("%q was taken for text", doc)
		}
	})
}
