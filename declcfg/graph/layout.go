package graph

// The measures of a picture, in pixels.
const (
	margin       = 20
	rowHeight    = 24
	lineHeight   = 18
	trackWidth   = 7
	nodeRadius   = 5
	headRadius   = 8
	laneGap      = 14
	charWidth    = 7.95 // of the 13 pixel monospaced font, with something to spare
	wordWidth    = 7    // an average letter of the 12 pixel proportional font, likewise
	legendHeight = 74
	minWidth     = 820 // that of the legend
	// levelWidth is up to which width of all lanes the names of channels are level; beyond, they are slanted.
	levelWidth = 620
	// repeatRows is from how many rows on the names of channels are repeated below the lanes.
	repeatRows = 30
)

// layout is where everything of a sheet is.
type layout struct {
	*sheet
	left, top  float64
	bare       bool
	lanes      []laneBox
	slanted    bool
	labelsAt   float64 // the base line of channel names
	rowsAt     float64 // the top of the first row
	versionsAt float64 // where versions end that stand before the lanes; 0 if they do not
	textAt     float64 // where the words of rows begin
	words      [][]word
	said       []note
	width      float64
	rowsBottom float64
	bottom     float64
}

// laneBox is where a lane is: its nodes at x, the tracks beside them.
type laneBox struct {
	*lane
	x float64
}

// word is a piece of a row's text.
type word struct {
	text, class string
	gap         bool // some room before it
}

// newLayout lays out a sheet from a place on; a bare one is without the name and summary of its package.
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

// label is what a lane is called above it.
func (l *lane) label() string {
	if l.isDefault {
		return "★ " + shown(l.name, maxName/2)
	}
	return shown(l.name, maxName/2)
}

func labelWidth(l *lane) float64 { return float64(columns(l.label())) * charWidth }

// placeLanes puts the lanes side by side: wide enough for their names where that leaves the picture small.
func (d *layout) placeLanes() {
	level := 0.0
	for _, l := range d.sheet.lanes {
		level += max(room(l.left), labelRoom(l)) + max(room(l.right), labelRoom(l))
	}
	d.slanted = level > levelWidth && len(d.sheet.lanes) > 1
	x := d.left
	if d.slanted {
		// The names are far from the first lanes.
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

// labelRoom is what the level name of a lane needs on each side of the nodes' centres.
func labelRoom(l *lane) float64 { return (labelWidth(l) + laneGap) / 2 }

// room is what a lane needs on one side of its nodes' centres for so many tracks.
func room(tracks int) float64 {
	if tracks == 0 {
		return headRadius + laneGap/2
	}
	return headRadius + 4 + float64(tracks)*trackWidth + laneGap/2
}

// leftTrack is where a track on the left is; tracks count from 1.
func (b *laneBox) leftTrack(track int) float64 { return b.x - headRadius - float64(track)*trackWidth }

// rightTrack is where a track on the right is; tracks count from 0.
func (b *laneBox) rightTrack(track int) float64 {
	return b.x + headRadius + float64(track+1)*trackWidth
}

// rowAt is the middle of a row.
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
