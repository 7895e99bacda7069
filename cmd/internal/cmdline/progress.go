package cmdline

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"

	"github.com/operator-bindery/bindery/internal/printable"
)

// Progress shows how far a long task is: on a terminal as a bar, elsewhere as a line of the log every few seconds. It is
// safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	out   *Screen // nil where there is no terminal
	line  func(string)
	bar   *mpb.Bar // nil until there is something to show
	begin time.Time
	last  time.Time     // of a line
	after time.Duration // when the bar appears
	open  bool          // it has a state and is not closed
	tick  *time.Timer   // shows the state where nothing changes it for long
	state State
}

// State is what a [Progress] shows. Zero values are unknown and not shown.
type State struct {
	What      string // "uploading"
	Done, All int
	Units     string // "packages"
	// Bytes of AllBytes are done. While Counting is set, AllBytes is what is known so far, and grows.
	Bytes, AllBytes int64
	Counting        bool
	Now             string // the thing that is worked on; may be untrusted text
}

const (
	// lineEvery is the time between lines where there is no terminal.
	lineEvery = 5 * time.Second
	// barAfter is the time after which a bar appears: a short task shows none.
	barAfter = 300 * time.Millisecond
)

// NewProgress returns the progress of a task that starts with its first state. The screen is a terminal to draw on; if it is
// nil, line, unless nil too, receives the text of a line.
func NewProgress(screen *Screen, line func(string)) *Progress {
	return &Progress{out: screen, line: line, after: barAfter}
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
	if p.tick == nil {
		p.tick = time.AfterFunc(p.interval(), p.again)
	}
	if p.out == nil {
		if time.Since(p.last) >= lineEvery {
			p.last = time.Now()
			p.line(p.state.text(time.Since(p.begin)))
		}
		p.mu.Unlock()
		return
	}
	if p.bar == nil && time.Since(p.begin) < p.after {
		p.mu.Unlock()
		return
	}
	if p.bar == nil {
		p.bar = p.out.add(p.drawn)
	}
	bar := p.bar
	done, all := p.state.share()
	p.mu.Unlock()
	// The bar asks for its text while it takes these, and the text takes the lock.
	bar.SetTotal(all, false)
	bar.SetCurrent(done)
}

// interval is the time after which a state that nothing changes is shown.
func (p *Progress) interval() time.Duration {
	if p.out == nil {
		return lineEvery
	}
	return p.after
}

// again shows the state again, unless the progress was closed.
func (p *Progress) again() {
	p.mu.Lock()
	open := p.open
	if open && p.out == nil {
		p.tick.Reset(p.interval())
	}
	p.mu.Unlock()
	if open {
		p.Update(func(*State) {})
	}
}

// share returns what is done of how much: bytes if all are known, or else things.
func (s State) share() (done, all int64) {
	if s.AllBytes > 0 && !s.Counting {
		return s.Bytes, s.AllBytes
	}
	return int64(s.Done), int64(s.All)
}

// drawn is what is shown in that many columns.
func (p *Progress) drawn(width int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.fit(time.Since(p.begin), width)
}

// maxNow is how much of [State.Now] is shown, in characters.
const maxNow = 40

// barWidth is the width of a bar in columns.
const barWidth = 24

// parts are what is said of a state, each empty if it is unknown.
type parts struct{ what, things, bytes, rate, left, now string }

// parts returns what is said, in full or, with short, in as few columns as possible.
func (s State) parts(spent time.Duration, short bool) parts {
	of, about, after := " of ", "about ", " left"
	if short {
		of, about = "/", ""
	}
	p := parts{what: s.What}
	switch {
	case s.All > 0:
		p.things = fmt.Sprintf("%d%s%d", s.Done, of, s.All)
	case s.Done > 0:
		p.things = fmt.Sprint(s.Done)
	}
	if p.things != "" {
		p.things = strings.TrimSpace(p.things + " " + s.Units)
	}
	done, all := FormatSize(s.Bytes), FormatSize(max(s.AllBytes, s.Bytes))
	if _, unit, _ := strings.Cut(all, " "); short && s.AllBytes > 0 {
		done = strings.TrimSuffix(done, " "+unit) // 1.2/8.3 GiB
	}
	switch {
	case s.AllBytes > 0 && s.Counting && !short:
		p.bytes = done + " of at least " + all
	case s.AllBytes > 0 && s.Counting:
		p.bytes = done + "/>" + all
	case s.AllBytes > 0:
		p.bytes = done + of + all
	case s.Bytes > 0:
		p.bytes = done
	}
	if spent >= time.Second {
		if s.Bytes > 0 {
			p.rate = FormatSize(int64(float64(s.Bytes)/spent.Seconds())) + "/s"
		}
		if done, all := s.share(); !s.Counting && all > done && meaningful(done, all, spent) {
			left := time.Duration(float64(spent) * float64(all-done) / float64(done))
			p.left = about + left.Round(time.Second).String() + after
		}
	}
	if s.Now != "" {
		p.now = cut(printable.Cell(s.Now), maxNow)
	}
	return p
}

// join returns the known parts as one text.
func (p parts) join(between string) string {
	var known []string
	for _, text := range []string{p.things, p.bytes, p.rate, p.left, p.now} {
		if text != "" {
			known = append(known, text)
		}
	}
	rest := strings.Join(known, between)
	if p.what == "" || rest == "" {
		return p.what + rest
	}
	return p.what + ": " + rest
}

// text is the state with the rate and the time that is left.
func (s State) text(spent time.Duration) string { return s.parts(spent, false).join(", ") }

// fit is the state in at most that many columns, with a bar where there is room. What gives way first is what is worked on,
// then the bar, then words: what is done of how much, the bytes, the rate and the time that is left come first.
func (s State) fit(spent time.Duration, width int) string {
	long, short := s.parts(spent, false), s.parts(spent, true)
	quiet := long
	quiet.now = ""
	for _, text := range []string{long.join(", "), quiet.join(", ")} {
		if bar := s.bar(); bar != "" && runewidth.StringWidth(text)+1+barWidth <= width {
			return text + " " + bar
		}
	}
	short.now = ""
	bare := short
	bare.things = strings.TrimSuffix(short.things, " "+s.Units)
	unnamed := bare
	unnamed.what = ""
	for _, p := range []struct {
		parts
		between string
	}{{quiet, ", "}, {short, ", "}, {short, " "}, {bare, " "}} {
		if text := p.join(p.between); runewidth.StringWidth(text) <= width {
			return text
		}
	}
	return runewidth.Truncate(unnamed.join(" "), width, "…")
}

// bar draws how much is done; empty if that is unknown.
func (s State) bar() string {
	done, all := s.share()
	if all <= 0 {
		return ""
	}
	const inside = barWidth - 2
	full := int(float64(inside) * float64(min(max(done, 0), all)) / float64(all))
	head := ""
	if full > 0 && full < inside {
		full, head = full-1, ">"
	}
	return "[" + strings.Repeat("=", full) + head + strings.Repeat("-", inside-full-len(head)) + "]"
}

// meaningful reports whether what is done says something about the rest: a tenth, or in a long task a hundredth.
func meaningful(done, all int64, spent time.Duration) bool {
	return done > 0 && (done >= all/10 || done >= all/100 && spent >= time.Minute)
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
	bar := p.bar
	if p.tick != nil {
		p.tick.Stop()
	}
	p.bar, p.open, p.tick = nil, false, nil
	p.mu.Unlock()
	if bar != nil {
		p.out.remove(bar) // draws once more, which takes the lock
	}
}
