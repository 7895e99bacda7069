package printable

import (
	"encoding/json"
	"testing"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`plain ünïcode ☃`: `"plain ünïcode ☃"`,
		"c1 \u009b31m":    `"c1 \u009b31m"`,
		"del \x7f":        `"del \u007f"`,
		"turned \u202e":   `"turned \u202e"`,
		"tag \U000e0041":  `"tag \udb40\udc41"`,
	} {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		got := JSON(text)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != in || string(got) != want {
			t.Errorf("%q: got %s, want %s (%v)", in, got, want, err)
		}
	}
}
