// Package printable makes untrusted text safe for terminals and tables, and for those who read them: it has no credentials.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/redact"
)

// Text returns s with everything that could control a terminal made visible: control characters other than newline and
// tab, invalid UTF-8, and unprintable characters, such as those that reverse the reading direction, become Go escapes
// (\x1b, \u202e). Credentials are removed as [redact.Text] says.
func Text(s string) string {
	if s = redact.Text(s); printable(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Rune(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

func printable(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !Rune(r) {
			return false
		}
		i += n
	}
	return true
}

// Rune reports whether a character can be printed unchanged: it is printable, a newline or a tab.
func Rune(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }

// Cell returns s for one cell of a table: newlines and tabs, which would break the columns, are escaped too.
func Cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(Text(s), "\n", `\n`), "\t", `\t`)
}

// Indent inserts two spaces before every line of s except the first.
func Indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
