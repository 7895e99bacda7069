package jsonscan_test

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// The kind of an object is its member "kind", if that is a string.
func TestKind(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"kind":"x"},"kind":"Pod"}`: "Pod", `{"kind":1}`: "", `{}`: "", `[]`: "", ``: "", `{"a":[}`: "", `{"kind`: "",
	} {
		if got := jsonscan.Kind([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// encoding/json takes a key in another case for a name.
func TestFoldsTo(t *testing.T) {
	for key, want := range map[string]bool{"NAME": true, "Name": true, "names": false,
		`na\u006de`: true, "ſ": true, "x": false} {
		if got := jsonscan.FoldsTo([]byte(key), "name", "schema"); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}

// A scanner reads strings, nulls and values, and stays failed after the first failure.
func TestScanner(t *testing.T) {
	s := jsonscan.NewScanner([]byte(`["a","b\n",null,{"x":[1]}]`))
	var texts []string
	nulls := 0
	var value []byte
	s.Array(func() {
		switch {
		case s.Null():
			nulls++
		case s.Peek() == '"':
			texts = append(texts, s.String())
		default:
			s.Object(func(key []byte) { value = append(key, s.Value()...) })
		}
	})
	if !s.Done() || nulls != 1 || len(texts) != 2 || texts[1] != "b\n" || string(value) != "x[1]" {
		t.Errorf("%v, %d, %q, %s", s.Done(), nulls, texts, value)
	}
	for _, text := range []string{`"a`, `"\x"`, `1`, ``} {
		s := jsonscan.NewScanner([]byte(text))
		if got := s.String(); got != "" || !s.Failed() || s.Peek() != 0 || s.Value() != nil || s.Null() {
			t.Errorf("%s: %q, failed: %v", text, got, s.Failed())
		}
	}
	s = jsonscan.NewScanner([]byte(`"a"`))
	if s.Fail(); s.String() != "" || s.Done() {
		t.Error("a scanner reads on after Fail")
	}
}

// At finds each value at a path and where it begins, and fails on a text that has no such path for its values.
func TestAt(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[{"b":1},{"c":2},{"b":{}}],"d":{"b":3}}`: "11:1 27:{} ", `{"b":1}`: "", `{"a":[]}`: "", `{"a":null}`: "failed", `{"a":[1]}`: "failed",
		`{"a":{}}`: "failed",
	} {
		s, got := jsonscan.NewScanner([]byte(text)), ""
		s.At(func() { got += fmt.Sprintf("%d:%s ", s.Offset(), s.Value()) }, "a", "[]", "b")
		if !s.Done() {
			got = "failed"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
