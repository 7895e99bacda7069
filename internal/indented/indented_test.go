package indented_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indented"
)

// The text is that of encoding/json, or there is none because it is too long.
func FuzzAppend(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `[[],{}]`, `{"a":[1,"b,\"{"],"c":{"d":null}}`, `"x"`, `[[[1,2],3]]`} {
		f.Add([]byte(text), 1000)
		f.Add([]byte(text), 10)
	}
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, text) != nil || json.Indent(&want, compact.Bytes(), "", "   ") != nil {
			return
		}
		got, ok := indented.Append([]byte("before"), compact.Bytes(), "   ", 0, most)
		if ok != (want.Len() <= most) || ok && string(got) != "before"+want.String() || !ok && string(got) != "before" {
			t.Errorf("%s, %d: %q %v", text, most, got, ok)
		}
	})
}

func TestBudgetIsForAllDocuments(t *testing.T) {
	value := json.RawMessage(strings.Repeat("[", 90) + strings.Repeat("1,", 1000) + "1" + strings.Repeat("]", 90))
	if _, err := indented.Encode(value, "    "); err != nil {
		t.Fatal(err)
	}
	var b indented.Budget
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = indented.EncodeWithin(value, "    ", &b)
	}
	if !errors.Is(err, indented.ErrTooLong) || fault.ClassOf(err) != fault.Limit || n != 3 {
		t.Errorf("document %d: %v", n, err)
	}
}
