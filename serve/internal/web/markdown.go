package web

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of a description that is read as Markdown. The time of the parser is quadratic in brackets, delimiters and
// containers, and a table has as many cells in each row as its first one: within these limits the worst text takes some
// 50 milliseconds.
const (
	maxMarkdown   = 32 << 10 // bytes; the rest of a longer description is not shown
	maxBrackets   = 2000     // "[" in a text
	maxDelimiters = 4000     // "*", "_", "~" and "`"
	maxContainers = 32       // quotes and lists that one line opens
	maxCells      = 40_000   // lines of the text times the columns of its widest line
)

// markdownParser reads CommonMark with tables, strikethrough and bare URLs. Blocks of HTML are not recognised: their
// text is read as Markdown, and their tags as tags within a paragraph.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewRawHTMLParser(), 400),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		),
	)
})

// parseMarkdown returns the blocks of a description; ok is false for a text beyond the limits, which is shown as it is.
func parseMarkdown(source []byte) (blocks []ast.Node, ok bool) {
	if !isWithinLimits(source) {
		return nil, false
	}
	document := markdownParser().Parse(text.NewReader(source))
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		blocks = append(blocks, n)
	}
	return blocks, true
}

// markdownSource returns the part of a description that is read.
func markdownSource(s string) []byte {
	if len(s) > maxMarkdown {
		s = s[:maxMarkdown]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if i := strings.LastIndexByte(s, '\n'); i > 0 {
			s = s[:i]
		}
		s += "\n\n…\n"
	}
	return []byte(strings.ReplaceAll(s, "\r\n", "\n"))
}

// isWithinLimits reports whether a text is within the limits.
func isWithinLimits(source []byte) bool {
	brackets, delimiters, lines, columns := 0, 0, 1, 1
	pipes, containers, leading := 0, 0, true
	for i, c := range source {
		switch c {
		case '\n':
			lines++
			pipes, containers, leading = 0, 0, true
			continue
		case '[':
			brackets++
		case '*', '_', '~', '`':
			if i == 0 || source[i-1] != c {
				delimiters++
			}
		case '|':
			pipes++
			columns = max(columns, pipes+1)
		}
		if leading {
			switch {
			case c == '>':
				containers++
			case strings.IndexByte("-+*.)", c) >= 0:
				if i+1 < len(source) && (source[i+1] == ' ' || source[i+1] == '\t') {
					containers++
				}
			case c != ' ' && c != '\t' && (c < '0' || c > '9'):
				leading = false
			}
			if containers > maxContainers {
				return false
			}
		}
	}
	return brackets <= maxBrackets && delimiters <= maxDelimiters && lines*columns <= maxCells
}
