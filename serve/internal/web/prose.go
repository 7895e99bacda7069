package web

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/operator-bindery/bindery/declcfg/graph"
)

// firstProse is how many bytes of a description are shown before the rest is folded.
const firstProse = 2400

// writeProse shows a description, the rest of a long one folded. top is the level of its highest headings.
func (p *page) writeProse(description string, top int) {
	source := markdownSource(description)
	if strings.TrimSpace(string(source)) == "" {
		p.emit(`<p class="faint">There is no description.</p>`)
		return
	}
	blocks, ok := parseMarkdown(source)
	if !ok {
		p.plainProse(string(source))
		return
	}
	w := proseWriter{page: p, source: source, top: top, last: top - 1}
	w.levels(blocks)
	start, folded := p.Len(), false
	for i, b := range blocks {
		if !folded && p.Len()-start > firstProse && len(blocks)-i > 1 {
			p.emit(`<details><summary>Show the whole description</summary>`)
			folded = true
		}
		w.block(b, 0)
	}
	if folded {
		p.emit(`</details>`)
	}
}

// plainProse shows a text without Markdown.
func (p *page) plainProse(text string) {
	for _, one := range paragraphs(text) {
		p.emit("<p class=\"raw\">{}</p>\n", one.text)
	}
}

// proseWriter writes the tree of a description. It writes elements by constants of its own and everything else as
// escaped text, so that its output has no other elements, attributes and URLs than those named here.
type proseWriter struct {
	*page
	source []byte
	top    int
	ranks  []int // the ranks of headings that occur, ascending
	last   int   // the level of the heading before
	linked bool  // inside of a link
	muted  bool  // between the tags of a script or a style
}

// maxProseDepth is how deep elements are nested; what is deeper is written as text.
const maxProseDepth = 24

// levels notes which ranks of headings there are: the highest becomes the level top, and no level is left out.
func (w *proseWriter) levels(blocks []ast.Node) {
	for _, b := range blocks {
		if h, ok := b.(*ast.Heading); ok && !slices.Contains(w.ranks, h.Level) {
			w.ranks = append(w.ranks, h.Level)
		}
	}
	slices.Sort(w.ranks)
}

var headings = [...][2]literal{3: {"<h3>", "</h3>"}, 4: {"<h4>", "</h4>"}, 5: {"<h5>", "</h5>"}, 6: {"<h6>", "</h6>"}}

func (w *proseWriter) heading(n *ast.Heading, depth int) {
	i := slices.Index(w.ranks, n.Level)
	if i < 0 || n.FirstChild() == nil { // in a quote or a list, where it would not be part of the page's outline
		w.wrap("<p><strong>", "</strong></p>\n", n, depth)
		return
	}
	level := min(w.top+i, w.last+1, len(headings)-1)
	w.last = level
	w.wrap(headings[level][0], headings[level][1]+"\n", n, depth)
}

// wrap writes an element with what is in it; begin and end are its tags.
func (w *proseWriter) wrap(begin, end literal, n ast.Node, depth int) {
	w.emit(begin)
	w.writeInside(n, depth)
	w.emit(end)
}

func (w *proseWriter) writeInside(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		_, tag := c.(*ast.RawHTML)
		switch {
		case w.muted && !tag:
		case c.Type() == ast.TypeInline:
			w.inline(c, depth+1)
		default:
			w.block(c, depth+1)
		}
	}
	w.muted = false
}

// block writes a block. What it does not know it writes as its text.
func (w *proseWriter) block(n ast.Node, depth int) {
	if depth > maxProseDepth {
		w.flatten(n)
		return
	}
	switch n := n.(type) {
	case *ast.Heading:
		w.heading(n, depth)
	case *ast.Paragraph:
		w.wrap("<p>", "</p>\n", n, depth)
	case *ast.TextBlock:
		w.writeInside(n, depth)
	case *ast.ThematicBreak:
		w.emit("<hr>\n")
	case *ast.Blockquote:
		w.wrap("<blockquote>", "</blockquote>\n", n, depth)
	case *ast.List:
		if n.IsOrdered() {
			w.wrap("<ol>", "</ol>\n", n, depth)
		} else {
			w.wrap("<ul>", "</ul>\n", n, depth)
		}
	case *ast.ListItem:
		w.wrap("<li>", "</li>\n", n, depth)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		w.emit(`<div class="snippet" data-copy="code"><pre tabindex="0"><code>{}</code></pre></div>`+"\n", w.code(n))
	case *extast.Table:
		w.emit(`<div class="scroll" tabindex="0" role="group" aria-label="Table in the description"><table>`)
		w.writeInside(n, depth)
		w.emit("</table></div>\n")
	case *extast.TableHeader:
		w.row(n, `<th scope="col">`, "</th>", depth)
	case *extast.TableRow:
		w.row(n, "<td>", "</td>", depth)
	default:
		w.flatten(n)
	}
}

func (w *proseWriter) row(n ast.Node, begin, end literal, depth int) {
	w.emit("<tr>")
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.wrap(begin, end, c, depth+1)
	}
	w.emit("</tr>\n")
}

// code returns the lines of a block of code.
func (w *proseWriter) code(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(w.source))
	}
	return lines(strings.Trim(b.String(), "\n"))
}

// inline writes a part of a paragraph.
func (w *proseWriter) inline(n ast.Node, depth int) {
	if depth > maxProseDepth {
		w.flatten(n)
		return
	}
	switch n := n.(type) {
	case *ast.Text:
		w.writeText(n.Segment.Value(w.source), n.IsRaw())
		switch {
		case n.HardLineBreak():
			w.emit("<br>\n")
		case n.SoftLineBreak():
			w.emit("\n")
		}
	case *ast.String:
		w.writeText(n.Value, true)
	case *ast.CodeSpan:
		w.emit("<code>")
		w.flatten(n)
		w.emit("</code>")
	case *ast.Emphasis:
		if n.Level >= 2 {
			w.wrap("<strong>", "</strong>", n, depth)
		} else {
			w.wrap("<em>", "</em>", n, depth)
		}
	case *extast.Strikethrough:
		w.wrap("<del>", "</del>", n, depth)
	case *ast.Link:
		w.link(string(n.Destination), func() { w.writeInside(n, depth) })
	case *ast.AutoLink:
		to := string(n.URL(w.source))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
			to = "mailto:" + to
		}
		w.link(to, func() { w.writeText(n.Label(w.source), true) })
	case *ast.Image:
		w.image(n)
	case *ast.RawHTML:
		w.tag(n)
	default:
		w.flatten(n)
	}
}

// link writes a link, or only its text if its address is none that a page may link to, or if it is inside of another.
func (w *proseWriter) link(to string, text func()) {
	address := proseURL(unescaped([]byte(to)))
	if address == "" || w.linked {
		text()
		return
	}
	w.linked = true
	w.emit(`<a href="{}" rel="nofollow noopener noreferrer">`, address)
	before := w.Len()
	text()
	if w.Len() == before { // the image of a badge, say, without a text
		w.emit("{}", visibleText(address))
	}
	w.emit("</a>")
	w.linked = false
}

// image writes a link to an image: a page loads nothing from other servers. In a link it is its text alone.
func (w *proseWriter) image(n *ast.Image) {
	text := strings.TrimSpace(w.textOf(n, true))
	address := proseURL(unescaped(n.Destination))
	switch {
	case w.linked || address == "":
		w.emit("{}", visibleText(text))
	default:
		text = cmp.Or(text, "picture")
		w.emit(`<a class="picture" href="{}" rel="nofollow noopener noreferrer">{}</a>`, address, visibleText(text))
	}
}

// tag writes what remains of a tag: the line break of <br>, nothing of other elements of HTML, and anything else, as
// <namespace>, as text.
func (w *proseWriter) tag(n *ast.RawHTML) {
	var raw strings.Builder
	for i := range n.Segments.Len() {
		segment := n.Segments.At(i)
		raw.Write(segment.Value(w.source))
	}
	tag := raw.String()
	name := strings.ToLower(strings.TrimLeft(tag, "</"))
	if end := strings.IndexFunc(name,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }); end >= 0 {
		name = name[:end]
	}
	w.muted = (name == "script" || name == "style") && !strings.HasPrefix(tag, "</")
	switch {
	case name == "br":
		w.emit("<br>\n")
	case strings.HasPrefix(tag, "<!--"), strings.Contains(htmlElements, " "+name+" ") && name != "":
	default:
		w.emit("{}", visibleText(tag))
	}
}

// htmlElements are the elements whose tags are left out.
const htmlElements = ` a abbr address article aside b bdi bdo big blockquote body button caption center cite code col
 colgroup dd del details dfn div dl dt em embed figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html
 i iframe img input ins kbd label li link main mark meta nav object ol p picture pre q s samp script section select
 small source span strike strong style sub summary sup svg table tbody td tfoot th thead title tr tt u ul var video
 wbr `

// writeText writes text, with entities and escapes resolved unless it is raw.
func (w *proseWriter) writeText(b []byte, raw bool) {
	s := string(b)
	if !raw {
		s = unescaped(b)
	}
	w.emit("{}", visibleText(s))
}

// flatten writes the text of a node without elements.
func (w *proseWriter) flatten(n ast.Node) { w.emit("{}", visibleText(w.textOf(n, true))) }

// textOf returns the text in a node, with that of pictures in it or without.
func (w *proseWriter) textOf(n ast.Node, pictures bool) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image:
			if !pictures {
				return ast.WalkSkipChildren, nil
			}
		case *ast.Text:
			b.WriteString(string(n.Segment.Value(w.source)))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b.WriteString(w.code(n))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// unescaped resolves the escapes and entities of Markdown.
func unescaped(b []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b))))
}

// visibleText returns a text on one or more lines with invisible characters made visible.
func visibleText(s string) string {
	if !strings.ContainsAny(s, "\n\t\r") {
		return graph.Visible(s)
	}
	all := strings.Split(strings.NewReplacer("\t", " ", "\r", "").Replace(s), "\n")
	for i := range all {
		all[i] = graph.Visible(all[i])
	}
	return strings.Join(all, "\n")
}

// proseURL returns an address that a description may link to: of the web or of a mailbox; empty for any other.
func proseURL(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || len(s) > 2000 {
		return ""
	}
	if strings.EqualFold(u.Scheme, "mailto") && u.Opaque != "" && u.Host == "" {
		return "mailto:" + strings.TrimPrefix(u.String(), u.Scheme+":")
	}
	return webURL(s)
}
