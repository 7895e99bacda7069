package graph

import (
	"bufio"
	"io"

	"github.com/operator-bindery/bindery/declcfg"
)

// What belongs to the drawings of [Options.WritePictures] in a page.
const (
	// Stylesheet is their CSS, for light and dark colour schemes.
	Stylesheet = stylesheet
	// HoverScript is an optional script that highlights the lines under the pointer.
	HoverScript = hoverScript
)

// WritePictures draws the upgrade graphs of a catalog for an HTML page with [Stylesheet]: an svg element for each
// package, without the package's name, description, style and legend. All names are escaped.
func (o Options) WritePictures(w io.Writer, c *declcfg.Catalog) error {
	sheets, err := o.sheets(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := picture{w: out, marked: true}
	for _, s := range sheets {
		if err := p.inline(s); err != nil {
			return err
		}
	}
	return out.Flush()
}

// inline draws one package as an element of a page.
func (p *picture) inline(s *sheet) error {
	d := newLayout(s, 4, 0, true)
	p.printf(`<svg class="upgrades" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-label="%s">`+"\n",
		num(d.width), num(d.bottom+4), escape(s.describe()))
	if err := p.drawSheet(&d, d.width); err != nil {
		return err
	}
	p.printf("</svg>\n")
	return nil
}

// WriteLegend draws the legend for the drawings of [Options.WritePictures].
func WriteLegend(w io.Writer) error {
	out := bufio.NewWriter(w)
	p := picture{w: out}
	p.legendElement()
	return out.Flush()
}

func (p *picture) legendElement() {
	p.printf(
		`<svg class="upgrades legend" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="What the signs mean">`+"\n", minWidth, legendHeight-20)
	p.legend(0, 0)
	p.printf("</svg>\n")
}

// Visible returns s with everything unprintable as a Go escape: control characters including newlines, invalid UTF-8,
// and characters that reverse the reading direction.
func Visible(s string) string { return visible(s) }
