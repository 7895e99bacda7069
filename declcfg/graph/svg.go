package graph

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// WriteSVG draws the upgrade graphs of a catalog as one SVG image, one package below another: bundles from the newest
// to the oldest, channels as lanes, upgrades going upwards. The drawing follows the viewer's colour scheme, contains a
// description in words, and needs no other files. The catalog need not be valid.
func (o Options) WriteSVG(w io.Writer, c *declcfg.Catalog) error {
	sheets, err := o.sheets(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := picture{w: out}
	y, width := float64(margin), float64(minWidth)
	layouts := make([]layout, len(sheets))
	var describe []string
	for i, s := range sheets {
		layouts[i] = newLayout(s, margin, y, false)
		y = layouts[i].bottom + 2*margin
		width = max(width, layouts[i].width)
		describe = append(describe, s.describe())
	}
	if len(sheets) == 0 {
		describe = append(describe, "The catalog has no packages.")
		y += 2 * rowHeight
	}
	height := y + legendHeight
	p.open(width, height, title(sheets), clip(strings.Join(describe, " "), 20000))
	p.printf("<style>\n%s</style>\n", stylesheet)
	p.printf(`<rect class="bg" width="100%%" height="100%%"/>` + "\n")
	if len(sheets) == 0 {
		p.writeText(margin, margin+rowHeight, "says", "The catalog has no packages.")
	}
	for i := range layouts {
		if err := p.drawSheet(&layouts[i], width); err != nil {
			return err
		}
	}
	p.legend(margin, y)
	p.printf("</svg>\n")
	return out.Flush()
}

func title(sheets []*sheet) string {
	if len(sheets) == 1 {
		return "Upgrade graph of " + shown(sheets[0].name, maxName)
	}
	return "Upgrade graphs"
}

// picture writes SVG and keeps the first write error.
type picture struct {
	w *bufio.Writer
	// marked adds attributes by which a script finds elements.
	marked bool
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// open begins a drawing.
func (p *picture) open(width, height float64, title, describe string) {
	p.printf(
		`<svg xmlns="http://www.w3.org/2000/svg" class="upgrades" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img">`+"\n", num(width), num(height))
	p.printf("<title>%s</title>\n<desc>%s</desc>\n", escape(title), escape(describe))
}

// writeText writes one line of visible text.
func (p *picture) writeText(x, y float64, class, s string) {
	p.printf(`<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, num(x), num(y), escape(s))
}

// num formats a coordinate with at most one decimal.
func num(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// escape escapes visible text for XML and HTML.
func escape(s string) string { return escaper.Replace(s) }
