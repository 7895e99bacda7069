package cmdline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// The JSON form escapes control characters for terminals and decodes to the original text.
func TestWriteJSONEscapes(t *testing.T) {
	const text = "a\u202eb\x1b[31m\x7f\u0085\U000e0001 日本 <é>\n\"\\u202e"
	var b bytes.Buffer
	if err := cmdline.WriteJSON(&b,
		&cmdline.Error{Class: cmdline.ClassInput, Object: text, Hint: text, Err: errors.New(text)}); err != nil {
		t.Fatal(err)
	}
	line := b.String()
	if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\u202e\x1b\x7f\u0085\U000e0001\n") ||
		!strings.Contains(line, "日本 <é>") {
		t.Errorf("%q", line)
	}
	var got struct{ Message, Object, Hint string }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Message != text || got.Object != text ||
		got.Hint != text {
		t.Errorf("%v: %q", err, got)
	}
}
