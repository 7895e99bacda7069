package cmdline

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// helpWidth is the number of columns that no line of help exceeds, unless a single word does.
const helpWidth = 100

// wrap breaks text at blanks into lines of at most width columns, and words that are longer behind a "|".
func wrap(text string, width int) []string {
	var lines []string
	line, columns := "", 0
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if len(word) > width {
			if at := strings.LastIndex(word[:width], "|") + 1; at > 0 {
				words = slices.Insert(words, i+1, word[at:])
				word = word[:at]
			}
		}
		n := utf8.RuneCountInString(word)
		if columns > 0 && columns+1+n > width {
			lines, line, columns = append(lines, line), "", 0
		}
		if columns > 0 {
			line, columns = line+" ", columns+1
		}
		line, columns = line+word, columns+n
	}
	return append(lines, line)
}

// reflow breaks the paragraphs of a description into lines. Those that start with two spaces are commands: a long one is
// continued with a backslash, before a flag where possible, so that it can still be copied to a shell.
func reflow(text string) string {
	var out, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, wrap(strings.Join(paragraph, " "), helpWidth)...)
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case strings.HasPrefix(line, "  "):
			flush()
			out = append(out, continued(line)...)
		case line == "":
			flush()
			out = append(out, "")
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// continued breaks a command into lines that end with a backslash.
func continued(line string) []string {
	var out []string
	for utf8.RuneCountInString(line) > helpWidth {
		room := line[:helpWidth-len(" \\")+1]
		at := strings.LastIndex(room, " -")
		if at <= len("    ") {
			at = strings.LastIndex(room, " ")
		}
		if at <= len("    ") || strings.Count(line[:at], "'")%2 == 1 {
			break
		}
		out = append(out, line[:at]+" \\")
		line = "      " + line[at+1:]
	}
	return append(out, line)
}
