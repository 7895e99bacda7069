package bounds

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{"1.2.3": "1.2.3", "v1.2": "1.2.0", "1": "1.0.0", "01.2": "1.2.0",
		"1-rc.1": "1.0.0-rc.1", "1.0.0+b": "1.0.0+b"} {
		if got, err := Parse(text); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "one", "1.x", "1.2.3.4", ">=1", "1.0.0-01", "1.0.0-", " 1",
		"99999999999999999999",
		"1.0.0-" + strings.Repeat("a", 300)} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
