package printable

import "testing"

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcode ☃\n\ttext": "plain ünïcode ☃\n\ttext",
		"\x1b[31mred\x1b[0m":      `\x1b[31mred\x1b[0m`,
		"bell\a, cr\r, del\x7f":   `bell\x07, cr\x0d, del\x7f`,
		"bad\xff\xfe":             `bad\xff\xfe`,
		"turned \u202egnp.exe":    `turned \u202egnp.exe`,
		"c1 \u009b31m":            `c1 \u009b31m`,
		"tag \U000e0041":          `tag \U000e0041`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
