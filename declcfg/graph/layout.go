package graph

// The measures of a drawing, in pixels.
const (
	margin       = 20
	rowHeight    = 24
	lineHeight   = 18
	trackWidth   = 7
	nodeRadius   = 5
	headRadius   = 8
	laneGap      = 14
	charWidth    = 7.95 // of the 13 pixel monospaced font, with a margin
	wordWidth    = 7    // average of a letter in the 12 pixel proportional font, with a margin
	legendHeight = 74
	minWidth     = 820 // the width of the legend
	// levelWidth is the width of all lanes up to which channel names are horizontal; beyond it they are slanted.
	levelWidth = 620
	// repeatRows is the number of rows from which channel names are repeated below the lanes.
	repeatRows = 30
)

// layout has the positions of a sheet's parts.
type layout struct {
	*sheet
	left, top  float64
	bare       bool
	lanes      []laneBox
	slanted    bool
	labelsAt   float64 // the base line of channel names
	rowsAt     float64 // the top of the first row
	versionsAt float64 // right edge of versions in front of the lanes; 0 if there are none
	textAt     float64 // left edge of the rows' text
	words      [][]word
	said       []note
	width      float64
	rowsBottom float64
	bottom     float64
}

// laneBox is the position of a lane: its nodes at x, the tracks on both sides.
type laneBox struct {
	*lane
	x float64
}

// word is a part of a row's text.
type word struct {
	text, class string
	gap         bool // preceded by a gap
}

// newLayout lays out a sheet from a position; a bare one omits the name and summary of its package.
func newLayout(s *sheet, left, top float64, bare bool) layout {
	for _, l := range s.lanes {
		l.measure()
	}
	d := layout{sheet: s, left: left, top: top, bare: bare, said: s.remarks()}
	y := top
	if !bare {
		y += 22 + lineHeight
	}
	y += float64(len(d.said)) * lineHeight
	d.placeLanes()
	labels := 0.0
	if len(s.lanes) > 0 {
		labels = rowHeight
		if d.slanted {
			labels = d.longestLabel()*0.71 + rowHeight
		}
	}
	d.labelsAt = y + labels
	d.rowsAt = d.labelsAt + 10
	d.rowsBottom = d.rowsAt + float64(len(s.rows))*rowHeight
	d.bottom = d.rowsBottom
	if d.repeats() {
		d.bottom += labels + 10
	}
	d.words = make([][]word, len(s.rows))
	for i, r := range s.rows {
		d.words[i] = r.words()
		d.width = max(d.width, d.textAt+wordsWidth(d.words[i])+margin)
	}
	if !bare {
		d.width = max(d.width, d.left+float64(columns(shown(s.name, maxName)))*13+margin)
	}
	for _, n := range append([]note{{s.summary(), false}}, d.said...) {
		d.width = max(d.width, d.left+float64(columns(n.text))*wordWidth+margin)
	}
	if d.slanted && len(d.lanes) > 0 {
		d.width = max(d.width, d.lanes[len(d.lanes)-1].x+d.longestLabel()*0.71+margin)
	}
	return d
}

func (d *layout) repeats() bool { return len(d.rows) >= repeatRows && len(d.lanes) > 0 }

func (d *layout) longestLabel() float64 {
	longest := 0.0
	for _, l := range d.sheet.lanes {
		longest = max(longest, labelWidth(l))
	}
	return longest
}

// label returns the text above the lane.
func (l *lane) label() string {
	if l.isDefault {
		return "★ " + shown(l.name, maxName/2)
	}
	return shown(l.name, maxName/2)
}

func labelWidth(l *lane) float64 { return float64(columns(l.label())) * charWidth }

// placeLanes places the lanes side by side, wide enough for their names if the drawing stays small.
func (d *layout) placeLanes() {
	level := 0.0
	for _, l := range d.sheet.lanes {
		level += max(room(l.left), labelRoom(l)) + max(room(l.right), labelRoom(l))
	}
	d.slanted = level > levelWidth && len(d.sheet.lanes) > 1
	x := d.left
	if d.slanted {
		// Names that are far from the lanes' beginning need no width.
		longest := 0
		for _, r := range d.rows {
			longest = max(longest, columns(r.tag()))
		}
		x += float64(longest) * charWidth
		d.versionsAt = x
	}
	for _, l := range d.sheet.lanes {
		left, right := room(l.left), room(l.right)
		if !d.slanted {
			left, right = max(left, labelRoom(l)), max(right, labelRoom(l))
		}
		d.lanes = append(d.lanes, laneBox{lane: l, x: x + left})
		x += left + right
	}
	d.textAt = x + 12
}

// labelRoom returns the width that the horizontal name of a lane needs on each side of the nodes' centres.
func labelRoom(l *lane) float64 { return (labelWidth(l) + laneGap) / 2 }

// room returns the width that a lane needs on one side of its nodes' centres for some tracks.
func room(tracks int) float64 {
	if tracks == 0 {
		return headRadius + laneGap/2
	}
	return headRadius + 4 + float64(tracks)*trackWidth + laneGap/2
}

// leftTrack returns the position of a track on the left; tracks count from 1.
func (b *laneBox) leftTrack(track int) float64 { return b.x - headRadius - float64(track)*trackWidth }

// rightTrack returns the position of a track on the right; tracks count from 0.
func (b *laneBox) rightTrack(track int) float64 {
	return b.x + headRadius + float64(track+1)*trackWidth
}

func (d *layout) rowAt(r *row) float64 {
	return d.rowsAt + float64(r.index)*rowHeight + rowHeight/2
}

func wordsWidth(words []word) float64 {
	w := 0.0
	for _, word := range words {
		size := charWidth
		if word.class == "note" || word.class == "warn" {
			size = wordWidth
		}
		w += float64(columns(word.text)) * size
		if word.gap {
			w += 14
		}
	}
	return w
}
