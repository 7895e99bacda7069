package graph

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with everything that is not printable as a Go escape: control characters, invalid UTF-8, and the
// characters that reverse the direction of reading.
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

// shown is a name as people see it, with at most n characters; one in which there is nothing to see is in quotes.
func shown(name string, n int) string {
	if strings.TrimSpace(name) == "" {
		return clip(strconv.Quote(name), n)
	}
	return clip(visible(name), n)
}

// flat is a text of several lines in one.
func flat(s string) string { return visible(strings.Join(strings.Fields(s), " ")) }

// clip returns s with at most n characters: the middle gives way to an ellipsis.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - 1) * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// columns is how many columns of a monospaced font a text takes.
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

// wide is true for characters that take two columns, with some that do not: what counts is that texts have room.
func wide(r rune) bool {
	return r <= 0x115f || r >= 0x2e80 && r <= 0xd7ff || r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f ||
		r >= 0xff00 && r <= 0xff60 || r >= 0x1f300
}

// naturally compares names so that a number in them counts as a number: v1.9 comes before v1.10.
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

// number splits s behind the digits that it begins with, which are returned without leading zeros.
func number(s string) (digits, rest string) {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
