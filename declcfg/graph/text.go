package graph

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with everything unprintable as a Go escape: control characters, invalid UTF-8, and characters that
// reverse the reading direction.
func visible(s string) string {
	clean := utf8.ValidString(s)
	for _, r := range s {
		clean = clean && unicode.IsPrint(r)
	}
	if clean {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// shown returns the displayed form of a name with at most n characters; a name without visible characters is quoted.
func shown(name string, n int) string {
	if strings.TrimSpace(name) == "" {
		return clip(strconv.Quote(name), n)
	}
	return clip(visible(name), n)
}

// flat joins the lines of a text.
func flat(s string) string { return visible(strings.Join(strings.Fields(s), " ")) }

// clip returns s with at most n characters: an ellipsis replaces the middle.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - 1) * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// columns returns the width of a text in columns of a monospaced font.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r >= 0x1100 && wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether a character may take two columns; it errs towards two, so that texts do not overlap.
func wide(r rune) bool {
	return r <= 0x115f || r >= 0x2e80 && r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f ||
		r >= 0xff00 && r <= 0xff60 || r >= 0x1f300
}

// naturally compares names with numbers in them by value: v1.9 comes before v1.10.
func naturally(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if !digit(x[0]) || !digit(y[0]) {
			if x[0] != y[0] {
				return int(x[0]) - int(y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		var m, n string
		m, x = number(x)
		n, y = number(y)
		if len(m) != len(n) {
			return len(m) - len(n)
		}
		if c := strings.Compare(m, n); c != 0 {
			return c
		}
	}
	if c := len(x) - len(y); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// number splits off the leading digits of s, without leading zeros.
func number(s string) (digits, rest string) {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
