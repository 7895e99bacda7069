package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		text          string
		string, value int
	}{
		{`"a"x`, 3, 3}, {`"\""x`, 4, 4}, {`"\\"x`, 4, 4}, {`"\\\""x`, 6, 6}, {`""`, 2, 2}, {`"a`, -1, -1},
		{`"a\"`, -1, -1}, {`"`, -1, -1},
		{`{"a":[1,{"b":"}"}]},`, 0, 19}, {`[ "]" , 2 ]`, 0, 11}, {`{"a":"`, 0, -1}, {`[[]`, 0, -1},
		{`12,`, 0, 2}, {`true}`, 0, 4}, {`null`, 0, 4}, {"1.5e3\n", 0, 5}, {``, 0, -1}, {`,`, 0, -1}, {`]`, 0, -1},
	} {
		if strings.HasPrefix(c.text, `"`) {
			if got := jsonscan.StringEnd([]byte(c.text), 0); got != c.string {
				t.Errorf("StringEnd(%s) = %d, want %d", c.text, got, c.string)
			}
		}
		if got := jsonscan.ValueEnd([]byte(c.text), 0); got != c.value {
			t.Errorf("ValueEnd(%s) = %d, want %d", c.text, got, c.value)
		}
	}
	if got := jsonscan.SkipSpace([]byte(strings.Repeat(" ", 19)+"\t\n\r x"), 0); got != 23 {
		t.Errorf("SkipSpace: %d", got)
	}
}

func TestMembers(t *testing.T) {
	object := []byte(`{"a":1,"b":{"c":["x","\u0041",{}],"d":"e\"f"},"g":null}`)
	var got []string
	jsonscan.Members(object, func(key, value []byte) bool {
		got = append(got, string(key)+"="+string(value))
		return true
	})
	if want := []string{"a=1", `b={"c":["x","\u0041",{}],"d":"e\"f"}`, "g=null"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	got = nil
	jsonscan.Elements(jsonscan.Member(object, "b", "c"), func(value []byte) bool {
		s, ok := jsonscan.Text(value)
		got = append(got, fmt.Sprint(s, ok))
		return true
	})
	if want := []string{"xtrue", "Atrue", "false"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if s := jsonscan.TextAt(object, "b", "d"); s != `e"f` {
		t.Errorf("got %q", s)
	}
	if v := jsonscan.Member(object, "b", "none", "x"); v != nil {
		t.Errorf("got %q", v)
	}
}

// Invalid input does not make any function panic.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,"b\"",{"c":null}]}`, `{"a`, `[1,`, `{"a":`, `"\`, `{"a":1]`, `[]x`, `{"":{}}`,
		` {"a" : 1 }`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		jsonscan.Members(b, func(key, value []byte) bool { jsonscan.Text(value); return true })
		jsonscan.Elements(b, func(value []byte) bool { jsonscan.Text(value); return true })
		s := jsonscan.NewScanner(b)
		s.Object(func([]byte) { s.Value() })
		s = jsonscan.NewScanner(b)
		s.Array(func() { _ = s.String() })
		var compact bytes.Buffer
		if json.Compact(&compact, b) != nil || compact.Len() == 0 {
			return
		}
		text := compact.Bytes()
		if end := jsonscan.ValueEnd(text, 0); end != len(text) {
			t.Errorf("%q: the value ends at %d of %d", text, end, len(text))
		}
		if s = jsonscan.NewScanner(text); len(s.Value()) != len(text) || !s.Done() {
			t.Errorf("%q is not read", text)
		}
		// The end is the same however the text is split.
		var scan jsonscan.End
		at, done := 0, false
		for n := 1; n <= len(text) && !done; n++ {
			at, done = scan.Advance(text[:n], at)
		}
		if (text[0] == '{' || text[0] == '[' || text[0] == '"') && (!done || at != len(text)) {
			t.Errorf("%q in pieces: %d, %v", text, at, done)
		}
	})
}

// sample is an object like a bundle's, with long strings that are skipped.
func sample() []byte {
	long := strings.Repeat(`a description with \"quotes\" and more `, 200)
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range 50 {
		fmt.Fprintf(&b, `"k%02d":{"description":"%s","n":[1,2,3]},`, i, long)
	}
	b.WriteString(`"z":"end"}`)
	return b.Bytes()
}

func BenchmarkMembers(b *testing.B) {
	object := sample()
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		if jsonscan.TextAt(object, "z") != "end" {
			b.Fatal("not found")
		}
	}
}

func BenchmarkMembersLibrary(b *testing.B) {
	object := sample()
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		d := jsontext.NewDecoder(bytes.NewBuffer(object))
		if _, err := d.ReadToken(); err != nil {
			b.Fatal(err)
		}
		for found := false; !found; {
			key, err := d.ReadToken()
			if err != nil {
				b.Fatal(err)
			}
			if found = key.String() == "z"; !found {
				err = d.SkipValue()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
