package graph

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// WriteHTML draws the upgrade graphs of a catalog as one HTML page: a table of contents, and for every package its
// drawing, as [Options.WriteSVG] draws it, and its edges as a table. The page needs no other files, and its policy
// forbids loading any. It can be read without scripts; with them, packages can be filtered and upgrade paths
// highlighted.
func (o Options) WriteHTML(w io.Writer, c *declcfg.Catalog) error {
	sheets, err := o.sheets(c)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := &page{picture: picture{w: out, marked: true}}
	p.writeHead(title(sheets))
	p.contents(sheets)
	p.printf("<main>\n")
	for i, s := range sheets {
		if err := p.section(i, s); err != nil {
			return err
		}
	}
	p.printf("</main>\n")
	if len(sheets) > 0 {
		p.legendElement()
	}
	p.printf("<script>\n%s</script>\n</body>\n</html>\n", script)
	return out.Flush()
}

// page writes a page of HTML.
type page struct{ picture }

// sourceHash returns the hash by which a content security policy allows an inline style or script.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) writeHead(title string) {
	style := "\n" + pageStyle + stylesheet
	p.printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p.printf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'">`+"\n",
		sourceHash(style), sourceHash("\n"+script))
	p.printf(`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n")
	p.printf(`<meta name="color-scheme" content="light dark">` + "\n")
	p.printf("<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<h1>%[1]s</h1>\n", escape(title), style)
}

// contents writes the table of contents if there is more than one package.
func (p *page) contents(sheets []*sheet) {
	channels, bundles := 0, 0
	for _, s := range sheets {
		channels += len(s.lanes)
		bundles += s.bundles()
	}
	if len(sheets) == 1 {
		return
	}
	p.printf("<p>%s, %s, %s.</p>\n", count(len(sheets), "package"), count(channels, "channel"),
		count(bundles, "bundle"))
	if len(sheets) == 0 {
		return
	}
	p.printf(
		"<nav aria-label=\"Packages\">\n<p hidden><label>Filter packages <input type=\"search\" " +
			"id=\"filter\"></label></p>\n<ul>\n")
	for i, s := range sheets {
		mark := ""
		if s.deprecation != nil {
			mark = ` <span class="mark">deprecated</span>`
		}
		name := escape(shown(s.name, maxName))
		p.printf("<li data-name=\"%s\"><a href=\"#%s\">%s</a>%s</li>\n", name, anchor(i, s), name, mark)
	}
	p.printf("</ul>\n</nav>\n")
}

// anchor returns the id of a package's section: its name, if that is valid in a URL.
func anchor(i int, s *sheet) string {
	if s.name == "" || len(s.name) > 63 || strings.Trim(s.name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Sprintf("section_%d", i)
	}
	return "package-" + s.name
}

func (p *page) section(i int, s *sheet) error {
	name := escape(shown(s.name, maxName))
	p.printf("<section id=\"%s\" data-name=\"%s\">\n<h2>%[2]s</h2>\n<p>%s</p>\n", anchor(i, s), name,
		escape(s.summary()))
	if s.pkg != nil && s.pkg.Description != "" {
		p.printf("<details><summary>Description</summary><p class=\"description\">%s</p></details>\n",
			escape(visibleLines(s.pkg.Description)))
	}
	p.printf(`<div class="scroll" tabindex="0" role="region" aria-label="Upgrade graph of %s">`+"\n", name)
	if err := p.inline(s); err != nil {
		return err
	}
	p.printf("</div>\n")
	if err := p.table(s); err != nil {
		return err
	}
	p.printf("</section>\n")
	return nil
}

// table writes all edges of a package.
func (p *page) table(s *sheet) error {
	if len(s.lanes) == 0 {
		return nil
	}
	p.printf(
		"<details><summary>As a table</summary>\n<div class=\"scroll\" " +
			"tabindex=\"0\"><table>\n<thead><tr><th>Channel<th>Bundle<th>Version<th>Replaces<th>Skips<th>Skip " +
			"range<th>Image</tr></thead>\n")
	for _, l := range s.lanes {
		p.printf("<tbody>\n")
		for _, n := range l.nodes {
			if n.entry == nil {
				continue
			}
			version, image := "", ""
			if n.row.versioned {
				version = n.row.version.String()
			}
			if n.row.bundle != nil {
				image = n.row.bundle.Image
			}
			skips := make([]string, len(n.entry.Skips))
			for i, skip := range n.entry.Skips {
				skips[i] = visible(skip)
			}
			p.printf("<tr>")
			for _, cell := range []string{l.name, n.row.name, version, n.entry.Replaces, strings.Join(skips, ", "),
				n.entry.SkipRange, image} {
				p.printf("<td>%s", escape(visible(cell)))
			}
			if _, err := p.w.WriteString("</tr>\n"); err != nil {
				return err
			}
		}
		p.printf("</tbody>\n")
	}
	p.printf("</table></div></details>\n")
	return nil
}

// visibleLines makes each line of a text visible.
func visibleLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = visible(lines[i])
	}
	return strings.Join(lines, "\n")
}
