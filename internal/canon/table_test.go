package canon

import (
	"fmt"
	"strings"
	"testing"
)

// bothWays converts a document with AppendYAML and with the library only; the results must agree.
func bothWays(t *testing.T, doc string) string {
	t.Helper()
	c := Converter{Limits: Limits{}.withDefaults()}
	got, err := c.AppendYAML(nil, []byte(doc))
	slow, slowErr := c.appendSlow(nil, []byte(doc), c.Limits)
	if string(got) != string(slow) || (err == nil) != (slowErr == nil) {
		t.Errorf("%q: %s, %v; the slow way %s, %v", doc, got, err, slow, slowErr)
	}
	if err != nil {
		return err.Error()
	}
	return string(got)
}

func TestScalarsMeanWhatYAML11Says(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "1.0": "1.0", "-0": "-0", "9007199254740993": "9007199254740993", "1e3": "1e3", "1E+3": "1E+3",
		"0":                               "0",
		"123456789012345678901234567890":  "123456789012345678901234567890",
		"+123456789012345678901234567890": "123456789012345678901234567890",
		"18446744073709551615":            "18446744073709551615",
		"0.1000000000000000000000001":     "0.1000000000000000000000001",
		"0x10":                            "16", "0xffffffffffffffff": "18446744073709551615", "010": "8", "0o10": "8",
		"0b11": "3", "-0b11": "-3",
		"1_000": "1000", "+1": "1", "08": "8", "007.5": "7.5",
		".5": "0.5", "1.": "1", "+.5e3": "0.5e3", "1_0.5": "10.5", "0xffffffffffffffffff": `"0xffffffffffffffffff"`,
		"1e400": `"1e400"`, "1:30": `"1:30"`, "190:20:30": `"190:20:30"`, "1.2.3": `"1.2.3"`, "4.16": "4.16",
		"v1": `"v1"`, "1.2-rc": `"1.2-rc"`, "0x": `"0x"`, "1_": "1",
		"-": "yaml: block sequence entries are not allowed in this context",
		"y": "true", "Y": "true", "yes": "true", "On": "true", "TRUE": "true", "n": "false", "no": "false",
		"off": "false", "yEs": `"yEs"`, "t": `"t"`,
		"~": "null", "null": "null", "Null": "null", "": "null", "nULL": `"nULL"`,
		"'yes'": `"yes"`, `"null"`: `"null"`, "'~'": `"~"`, "|-\n  null": `"null"`, "!!str 1": `"1"`, "!!int '1'": "1",
		"!!float 1": "1", "!!binary aGk=": `"hi"`,
		"2001-12-14": `"2001-12-14"`, "2001-12-14t21:59:43.10-05:00": `"2001-12-14t21:59:43.10-05:00"`, "2001": "2001",
		".inf": "yaml: unsupported value: +Inf", "-.INF": "yaml: unsupported value: -Inf",
		".nan":                             "yaml: unsupported value: NaN",
		`"<>&` + "\\u2028\\x07\\0é😀" + `"`: `"<>&\u2028\u0007\u0000é😀"`,
	} {
		if got := strings.TrimSuffix(strings.TrimPrefix(bothWays(t, "a: "+text+"\n"), `{"a":`), "}"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestKeysAreStrings(t *testing.T) {
	for text, want := range map[string]string{
		"y": "true", "N": "false", "on": "true", "1": "1", "010": "8", "0x1f": "31", "1.10": "1.1", "1.0": "1",
		"1e3": "1000", ".inf": ".inf", "2001-01-01": "2001-01-01",
		"'y'": "y", `"1.10"`: "1.10", "''": "", "a b": "a b", "=": "=", "'<<'": "<<", "'~'": "~",
	} {
		if got := bothWays(t, text+": x\n"); got != fmt.Sprintf("{%q:\"x\"}", want) {
			t.Errorf("%s: got %s, want %q", text, got, want)
		}
	}
}

func TestKeysAreSortedAsEncodingJSONDoes(t *testing.T) {
	// Keys sort by their UTF-8 bytes and unescaped; UTF-16 would sort the emoji before U+FF5E.
	const want = `{"\n":1,"!":2,"\"":3,"A":4,"\\":5,"a":6,"a\t":7,"a!":8,"aa":9,"é":10,"\u2028":11,"` + "\uff5e" +
		`":12,"😀":13}`
	got, err := AppendJSON(nil,
		[]byte(
			`{"😀":13,"`+"\uff5e"+
				`":12,"\u2028":11,"\u00e9":10,"aa":9,"a!":8,"a\t":7,"\u0061":6,"\\":5,"A":4,"\"":3,"!":2,"\n":1}`),
		Limits{}, nil)
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func TestOutputIsAppended(t *testing.T) {
	for _, doc := range []Doc{{Data: []byte("b: 1\na: 2\n")}, {Data: []byte(`{"b":1,"a":2}`), JSON: true},
		{Data: []byte("b: &x 1\na: 2\n")}} {
		var c Converter
		for range 2 {
			if got, err := c.Append([]byte("x"), doc); err != nil || !strings.HasPrefix(string(got), `x{"a":2,"b":1`) {
				t.Errorf("%s: %s, %v", doc.Data, got, err)
			}
		}
	}
	if got, err := AppendYAML([]byte("x"), []byte("a: [\n"), Limits{}, nil); err == nil || string(got) != "x" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestDocumentsOfAStream(t *testing.T) {
	for stream, want := range map[string]string{
		"":                                     "EOF",
		"\n# nothing\n---\n---\n# here\n":      "EOF",
		"a: 1":                                 `1 yaml "a: 1\n"; EOF`,
		"---\na: 1\n---\n\n# c\nb: 2\n":        `2 yaml "a: 1\n"; 6 yaml "b: 2\n"; EOF`,
		"a: 1\r\n--- # x\r\nb: |\r\n  c\r\n":   `1 yaml "a: 1\n"; 3 yaml "b: |\n  c\n"; EOF`,
		"\xef\xbb\xbfa: 1\n":                   `1 yaml "a: 1\n"; EOF`,
		"\xef\xbb\xbf{\"a\": 1}\n{\"b\": 1}\n": `1 yaml "{\"a\": 1}\n{\"b\": 1}\n"; EOF`,
		"a\n---b\n":                            `1: yaml: line 2: invalid Yaml document separator: b`,
		"a: |\n  ---\n  b\n":                   `1 yaml "a: |\n  ---\n  b\n"; EOF`,
		"%YAML 1.1\n---\na: 1\n":               `1 yaml "%YAML 1.1\n"; 3 yaml "a: 1\n"; EOF`,
		"\n {\"a\":\"}\"}{\"b\":1}\n\n [2] ":   `2 json "{\"a\":\"}\"}"; 2 json "{\"b\":1}"; 4 json "[2]"; EOF`,
		"{a: 1}\n---\n{b: 2}\n":                `1 yaml "{a: 1}\n"; 3 yaml "{b: 2}\n"; EOF`,
		"{\"a\":1}\n---\nb: 2\n":               `1 json "{\"a\":1}"; 3 yaml "b: 2\n"; EOF`,
		"{\"a\":1}\n{\"b\":":                   `1 json "{\"a\":1}"; 2: json: line 1, column 6: unexpected EOF`,
		"{}\n{}\n{x}":                          `1 json "{}"; 2 json "{}"; 3 json "{x}"; EOF`,
	} {
		s := NewSplitter(strings.NewReader(stream), Limits{})
		got := ""
		for {
			d, err := s.Next()
			if err != nil {
				if err.Error() != "EOF" {
					got += fmt.Sprintf("%d: ", d.Line)
				}
				got += err.Error()
				break
			}
			format := "yaml"
			if d.JSON {
				format = "json"
			}
			got += fmt.Sprintf("%d %s %q; ", d.Line, format, d.Data)
		}
		if got != want {
			t.Errorf("%q\n got %s\nwant %s", stream, got, want)
		}
		if _, err := s.Next(); err == nil {
			t.Errorf("%q: there is more", stream)
		}
	}
}
