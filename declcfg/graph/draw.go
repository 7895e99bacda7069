package graph

import (
	"fmt"
	"math"
	"strings"
)

// drawSheet draws one package. The only error is that of the writer.
func (p *picture) drawSheet(d *layout, width float64) error {
	y := d.top + 18
	if !d.bare {
		p.writeText(d.left, y, "name", shown(d.name, maxName))
		p.writeText(d.left, y+lineHeight, "says", d.summary())
		y += 2 * lineHeight
	}
	for _, n := range d.said {
		class := "says"
		if n.strong {
			class = "warn"
		}
		p.writeText(d.left, y, class, n.text)
		y += lineHeight
	}
	p.bands(d, width)
	for i := range d.lanes {
		p.label(d, &d.lanes[i], false)
	}
	for i := range d.lanes {
		p.lane(d, &d.lanes[i])
	}
	for i, r := range d.rows {
		if err := p.drawRow(d, r, d.words[i]); err != nil {
			return err
		}
	}
	if d.repeats() {
		for i := range d.lanes {
			p.label(d, &d.lanes[i], true)
		}
	}
	return nil
}

// bands marks the rows of every other minor version and draws a line in each row from its last node to its text.
func (p *picture) bands(d *layout, width float64) {
	shaded, from := false, 0
	for i := 1; i <= len(d.rows); i++ {
		if i < len(d.rows) && d.rows[i].group() == d.rows[from].group() {
			continue
		}
		if shaded {
			p.printf(`<rect class="band" x="0" y="%s" width="%s" height="%s"/>`+"\n",
				num(d.rowsAt+float64(from)*rowHeight), num(width), num(float64(i-from)*rowHeight))
		}
		shaded, from = !shaded, i
	}
	for _, r := range d.rows {
		if len(r.nodes) > 0 {
			box := &d.lanes[r.nodes[len(r.nodes)-1].lane.index]
			p.printf(`<path class="rule" d="M%s,%sH%s"/>`+"\n", num(box.x+headRadius+4), num(d.rowAt(r)),
				num(d.textAt-6))
		}
	}
}

// group returns the minor version of a row.
func (r *row) group() string {
	if !r.versioned {
		return ""
	}
	return fmt.Sprintf("%d.%d", r.version.Version.Major, r.version.Version.Minor)
}

// label writes the name of a channel above its lane or, with the opposite slant, below.
func (p *picture) label(d *layout, b *laneBox, below bool) {
	y, turn, anchor := d.labelsAt, -45, "start"
	if below {
		y, turn = d.rowsBottom+18, 45
	}
	rotate := ""
	if d.slanted {
		rotate = fmt.Sprintf(` transform="rotate(%d %s %s)"`, turn, num(b.x), num(y))
	} else {
		anchor = "middle"
	}
	class := fmt.Sprintf("lane h%d", b.index%hues)
	if b.deprecation != nil {
		class += " old"
	}
	p.printf(`<text class="%s" x="%s" y="%s" text-anchor="%s"%s>%s</text>`+"\n", class, num(b.x), num(y), anchor,
		rotate, escape(b.label()))
}

// lane draws the lines of a channel and then its nodes.
func (p *picture) lane(d *layout, b *laneBox) {
	p.printf(`<g class="h%d">`+"\n", b.index%hues)
	for i := range b.rails {
		p.rail(d, b, &b.rails[i])
	}
	for _, e := range b.edges {
		p.edge(d, b, e)
	}
	for _, n := range b.nodes {
		p.node(b.x, d.rowAt(n.row), n)
	}
	p.printf("</g>\n")
}

// reach returns the distance from the centre of a node to its edge.
func (n *node) reach() float64 {
	if n.head {
		return headRadius + 1
	}
	return nodeRadius + 1
}

// edge draws a replaces edge: a line with its arrowhead at the newer bundle.
func (p *picture) edge(d *layout, b *laneBox, e edge) {
	y1, y2 := d.rowAt(e.from.row), d.rowAt(e.to.row)
	r1, r2 := e.from.reach(), e.to.reach()
	p.printf("<g%s>", p.ends(e.from, e.to))
	defer p.printf("</g>\n")
	if e.track == 0 {
		p.printf(`<path class="replaces" d="M%s,%sV%s"/>`, num(b.x), num(y2-r2), num(y1+r1+3))
		p.printf(`<path class="tip" d="M%s,%sl-4,7h8z"/>`, num(b.x), num(y1+r1))
		return
	}
	track := b.leftTrack(e.track)
	p.printf(`<path class="replaces" d="M%s,%sH%s%sH%s"/>`, num(b.x-r2), num(y2), num(track+4), turns(track, 4, y2, y1),
		num(b.x-r1-4))
	p.printf(`<path class="tip" d="M%s,%sl-7,-4v8z"/>`, num(b.x-r1), num(y1))
}

// turns returns the part of a path along a track from one row to another, with round corners. side is the distance from
// the track at which corners begin.
func turns(track, side, from, to float64) string {
	step := 4.0
	if to < from {
		step = -4
	}
	x := num(track)
	return fmt.Sprintf("Q%s,%s %s,%sV%sQ%s,%s %s,%s", x, num(from), x, num(from+step), num(to-step), x, num(to),
		num(track+side), num(to))
}

// rail draws what an entry skips: a line next to the nodes, with its arrowhead at the entry and a dot for each skipped
// bundle. A bundle that several entries skip is connected to the outermost line only, across the dots of the others, as
// overlapping connections would be illegible.
func (p *picture) rail(d *layout, b *laneBox, r *rail) {
	class := "skips"
	if r.byRange {
		class = "range"
	}
	y, reach := d.rowAt(r.from.row), r.from.reach()
	track := b.rightTrack(r.track)
	var path, dots strings.Builder
	last := len(r.to) - 1
	for i, n := range r.to {
		at := d.rowAt(n.row)
		outer := i == last && at > y || i == 0 && at < y // where the line ends
		switch {
		case outer && r.tied[i]:
			fmt.Fprintf(&path, "M%s,%sH%s%sH%s", num(b.x+reach+4), num(y), num(track-4), turns(track, -4, y, at),
				num(b.x+n.reach()))
			continue
		case outer:
			fmt.Fprintf(&path, "M%s,%sH%sQ%s,%s %s,%sV%s", num(b.x+reach+4), num(y), num(track-4), num(track), num(y),
				num(track), num(y+math.Copysign(4, at-y)), num(at))
		case r.tied[i]:
			fmt.Fprintf(&path, "M%s,%sH%s", num(track), num(at), num(b.x+n.reach()))
		}
		fmt.Fprintf(&dots, "M%s,%sh0", num(track), num(at))
	}
	p.printf(`<g%s><path class="%s" d="%s"/>`, p.ends(r.from, r.to...), class, path.String())
	if dots.Len() > 0 {
		p.printf(`<path class="dots" d="%s"/>`, dots.String())
	}
	p.printf(`<path class="tip" d="M%s,%sl7,-4v8z"/></g>`+"\n", num(b.x+reach), num(y))
}

// ends returns the attributes by which a script finds the ends of a line.
func (p *picture) ends(from *node, to ...*node) string {
	if !p.marked {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, ` data-ends="%d`, from.row.index)
	for _, n := range to {
		fmt.Fprintf(&b, " %d", n.row.index)
	}
	return b.String() + `"`
}

// rowMark returns the attribute by which a script finds the elements of a row.
func (p *picture) rowMark(r *row) string {
	if !p.marked {
		return ""
	}
	return fmt.Sprintf(` data-row="%d"`, r.index)
}

// node draws the node of a bundle in a channel.
func (p *picture) node(x, y float64, n *node) {
	p.printf("<g%s>", p.rowMark(n.row))
	p.shape(x, y, n.entry == nil, n.head, n.skipped, n.row.deprecation != nil)
	p.printf("<title>%s</title></g>\n", escape(n.title()))
}

// shape draws a node: round, square if deprecated, a diamond if not in the channel; filled, or hollow if skipped; with
// a ring if it is a head.
func (p *picture) shape(x, y float64, absent, head, skipped, deprecated bool) {
	const r = nodeRadius
	class := "dot"
	if skipped {
		class += " hollow"
	}
	switch {
	case absent:
		p.printf(`<path class="ghost" d="M%s,%sl6,6l-6,6l-6,-6z"/>`, num(x), num(y-6))
	case deprecated:
		p.printf(`<rect class="%s" x="%s" y="%s" width="10" height="10"/>`, class, num(x-r), num(y-r))
		p.printf(`<path class="cross" d="M%s,%sl6,6m0,-6l-6,6"/>`, num(x-3), num(y-3))
	default:
		p.printf(`<circle class="%s" cx="%s" cy="%s" r="%d"/>`, class, num(x), num(y), r-1)
	}
	if head {
		p.printf(`<circle class="ring" cx="%s" cy="%s" r="%d"/>`, num(x), num(y), headRadius)
	}
}

// drawRow writes the text of a row.
func (p *picture) drawRow(d *layout, r *row, words []word) error {
	mark := p.rowMark(r)
	if d.versionsAt > 0 {
		p.printf(`<text class="tag" x="%s" y="%s">%s</text>`+"\n", num(d.versionsAt), num(d.rowAt(r)+4.5),
			escape(r.tag()))
	}
	p.printf(`<text x="%s" y="%s"%s>`, num(d.textAt), num(d.rowAt(r)+4.5), mark)
	for _, w := range words {
		gap := ""
		if w.gap {
			gap = ` dx="14"`
		}
		p.printf(`<tspan class="%s"%s>%s</tspan>`, w.class, gap, escape(w.text))
	}
	_, err := p.w.WriteString("</text>\n")
	return err
}

func (p *picture) legend(x, y float64) {
	p.printf(`<g class="h0">` + "\n")
	at := x + 8
	sign := func(text string, absent, head, skipped, deprecated bool) {
		p.shape(at, y+14, absent, head, skipped, deprecated)
		p.writeText(at+14, y+18, "note", text)
		at += 14 + float64(columns(text))*wordWidth + 22
	}
	sign("bundle", false, false, false, false)
	sign("head of a channel", false, true, false, false)
	sign("skipped", false, false, true, false)
	sign("deprecated", false, false, false, true)
	sign("not in the channel", true, false, false, false)
	at = x
	line := func(class, text string) {
		p.printf(`<path class="%s" d="M%s,%sh28"/>`, class, num(at), num(y+38))
		p.printf(`<path class="tip" d="M%s,%sl-7,-4v8z"/>`, num(at+36), num(y+38))
		p.writeText(at+44, y+42, "note", text)
		at += 44 + float64(columns(text))*wordWidth + 22
	}
	line("replaces", "replaces")
	line("skips", "skips")
	line("range", "skipRange")
	p.writeText(at, y+42, "note", "Upgrades go upwards, to the tip of a line. ★ is the default channel.")
	p.printf("</g>\n")
}
