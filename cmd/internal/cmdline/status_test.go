package cmdline

import (
	"bytes"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	var b bytes.Buffer
	s := NewStatus(&b, true)
	s.Set("one \x1b[31m\nred " + strings.Repeat("x", 200))
	s.Set("at once after it")
	s.Close()
	got := b.String()
	text, ok := strings.CutPrefix(got, eraseLine)
	text, closed := strings.CutSuffix(text, "\r"+eraseLine)
	if !ok || !closed || strings.ContainsAny(text, "\x1b\n\r") || len([]rune(text)) != statusWidth ||
		strings.Contains(got, "at once") {
		t.Errorf("%q", got)
	}
	b.Reset()
	s = NewStatus(&b, false)
	s.Set("text")
	s.Close()
	if b.Len() > 0 {
		t.Errorf("drawn where nothing may be: %q", b.String())
	}
}
