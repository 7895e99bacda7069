package cmdline

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/operator-bindery/bindery/internal/printable"
)

// Progress shows how far a long task is: on a terminal as a bar, elsewhere as a line of the log every few seconds. It is
// safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer // the terminal; nil elsewhere
	line  func(string)
	bars  *mpb.Progress // nil until there is something to show
	bar   *mpb.Bar
	begin time.Time
	last  time.Time     // of a line
	after time.Duration // when the bar appears
	open  bool          // it has a state and is not closed
	state State
}

// State is what a [Progress] shows. Zero values are unknown and not shown.
type State struct {
	What      string // "uploading"
	Done, All int
	Units     string // "packages"
	// Bytes of AllBytes are done. AllBytes may grow while things are found.
	Bytes, AllBytes int64
	Now             string // the thing that is worked on; may be untrusted text
}

const (
	// lineEvery is the time between lines where there is no terminal.
	lineEvery = 5 * time.Second
	// barAfter is the time after which a bar appears: a short task shows none.
	barAfter = 300 * time.Millisecond
)

// NewProgress returns the progress of a task that starts with its first state. draw says whether w is a terminal to draw on; otherwise
// line, unless nil, receives the text of a line.
func NewProgress(w io.Writer, draw bool, line func(string)) *Progress {
	p := &Progress{line: line, after: barAfter}
	if draw {
		p.out, p.line = w, nil
	}
	return p
}

// Set shows a state.
func (p *Progress) Set(s State) { p.Update(func(now *State) { *now = s }) }

// Update changes the state.
func (p *Progress) Update(change func(*State)) {
	if p.out == nil && p.line == nil {
		return
	}
	p.mu.Lock()
	p.open = true
	if change(&p.state); p.begin.IsZero() {
		p.begin, p.last = time.Now(), time.Now()
	}
	if p.out == nil {
		if time.Since(p.last) >= lineEvery {
			p.last = time.Now()
			p.line(p.state.text(time.Since(p.begin)))
		}
		p.mu.Unlock()
		return
	}
	if p.bars == nil && time.Since(p.begin) < p.after {
		p.mu.Unlock()
		return
	}
	if p.bars == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(24))
		p.bar = p.bars.AddBar(0, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.text() })))
	}
	bar := p.bar
	done, all := p.state.share()
	p.mu.Unlock()
	// The bar asks for its text while it takes these, and the text takes the lock.
	bar.SetTotal(all, false)
	bar.SetCurrent(done)
}

// share returns what is done of how much: bytes, or else things.
func (s State) share() (done, all int64) {
	if s.AllBytes > 0 {
		return s.Bytes, s.AllBytes
	}
	return int64(s.Done), int64(s.All)
}

func (p *Progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.text(time.Since(p.begin)) + " "
}

// maxNow is how much of [State.Now] is shown, in characters.
const maxNow = 40

// text is the state with the rate and the time that is left.
func (s State) text(spent time.Duration) string {
	var parts []string
	things := ""
	switch {
	case s.All > 0:
		things = fmt.Sprintf("%d of %d", s.Done, s.All)
	case s.Done > 0:
		things = fmt.Sprint(s.Done)
	}
	if things != "" {
		parts = append(parts, strings.TrimSpace(things+" "+s.Units))
	}
	switch {
	case s.AllBytes > 0:
		parts = append(parts, FormatSize(s.Bytes)+" of "+FormatSize(max(s.AllBytes, s.Bytes)))
	case s.Bytes > 0:
		parts = append(parts, FormatSize(s.Bytes))
	}
	if spent >= time.Second {
		if s.Bytes > 0 {
			parts = append(parts, FormatSize(int64(float64(s.Bytes)/spent.Seconds()))+"/s")
		}
		if done, all := s.share(); done > all/100 && all > done { // a smaller part says nothing about the rest
			left := time.Duration(float64(spent) * float64(all-done) / float64(done))
			parts = append(parts, fmt.Sprintf("about %s left", left.Round(time.Second)))
		}
	}
	if s.Now != "" {
		parts = append(parts, cut(printable.Cell(s.Now), maxNow))
	}
	if s.What == "" {
		return strings.Join(parts, ", ")
	}
	return strings.TrimSuffix(s.What+": "+strings.Join(parts, ", "), ": ")
}

func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}

// Open reports whether the progress shows a state: it has one and is not closed.
func (p *Progress) Open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Close removes the bar. A later state shows it again.
func (p *Progress) Close() {
	p.mu.Lock()
	bars, bar := p.bars, p.bar
	p.bars, p.bar, p.open = nil, nil, false
	p.mu.Unlock()
	if bars != nil {
		bar.Abort(true)
		bars.Wait() // draws once more, which takes the lock
	}
}
