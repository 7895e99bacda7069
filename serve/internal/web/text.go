package web

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/operator-bindery/bindery/declcfg/graph"
)

// How much of a text is shown.
const (
	maxName  = 160      // characters of a name
	maxProse = 32 << 10 // bytes of a description
	maxJSON  = 16 << 10 // bytes of a property's value
)

// clip returns s with at most n characters and an ellipsis for the rest.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count++; count == n {
			_, size := utf8.DecodeRuneInString(s[i:])
			if i+size == len(s) {
				return s
			}
			return strings.Clone(s[:i]) + "…"
		}
	}
	return s
}

// name returns the displayed form of a name.
func name(s string) string {
	if strings.TrimSpace(s) == "" {
		return `""`
	}
	return graph.Visible(clip(s, maxName))
}

// lines returns a text of several lines with invisible characters made visible.
func lines(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(clip(s, maxProse), "\r\n", "\n"))
	all := strings.Split(s, "\n")
	for i, line := range all {
		all[i] = graph.Visible(strings.ReplaceAll(strings.TrimRight(line, " \t\r"), "\t", "    "))
	}
	return strings.Join(all, "\n")
}

// paragraph is a part of a description.
type paragraph struct {
	text    string
	heading bool
}

// paragraphs splits a description at empty lines and headings. Most descriptions are Markdown, of which only these are
// interpreted.
func paragraphs(s string) []paragraph {
	var out []paragraph
	var text []string
	flush := func() {
		if joined := strings.Join(text, "\n"); strings.TrimSpace(joined) != "" {
			out = append(out, paragraph{text: joined})
		}
		text = nil
	}
	for line := range strings.SplitSeq(lines(s), "\n") {
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		switch {
		case line == "":
			flush()
		case marks > 0 && marks <= 6 && strings.HasPrefix(line[marks:], " "):
			flush()
			if title := strings.Trim(line, "# "); title != "" {
				out = append(out, paragraph{title, true})
			}
		default:
			text = append(text, line)
		}
	}
	flush()
	return out
}

// plain returns the text of the first paragraph of a description, for a line in a list. Pictures, as the badges that many
// begin with, have no text there.
func plain(s string) string {
	source := markdownSource(s)
	blocks, ok := parseMarkdown(source)
	if !ok {
		return strings.Join(strings.Fields(s), " ")
	}
	w := proseWriter{source: source}
	for _, b := range blocks {
		if b.Kind() != ast.KindParagraph {
			continue
		}
		if text := strings.TrimSpace(unescaped([]byte(w.textOf(b, false)))); text != "" {
			return text
		}
	}
	return ""
}

// webURL returns a URL that a page may link to; empty for any other.
func webURL(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || len(s) > 2000 || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// link returns the URL of a page relative to any other page: all are on one level, so that they also work below the
// path of a proxy. Names are in the query, where their characters have no meaning.
func link(page string, pairs ...string) string {
	var b strings.Builder
	b.WriteString(page)
	sep := byte('?')
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		b.WriteByte(sep)
		b.WriteString(pairs[i] + "=" + url.QueryEscape(pairs[i+1]))
		sep = '&'
	}
	return b.String()
}
