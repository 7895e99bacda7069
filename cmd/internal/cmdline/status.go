package cmdline

import (
	"io"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/printable"
)

// The maximum width of a status line, and the minimum time between changes.
const (
	statusWidth = 78
	statusEvery = 100 * time.Millisecond
)

// Status is a line on a terminal that shows the current step. It overwrites itself and is removed at the end. It is
// safe for concurrent use.
type Status struct {
	mu   sync.Mutex
	out  io.Writer // nil if nothing is drawn
	last time.Time
}

// NewStatus returns a status line on w; if draw is false it draws nothing.
func NewStatus(w io.Writer, draw bool) *Status {
	s := &Status{}
	if draw {
		s.out = w
	}
	return s
}

// Set shows the text, unless the line has just changed. The text may contain untrusted input. Write errors are ignored:
// the line is decoration.
func (s *Status) Set(text string) {
	if s.out == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.last) >= statusEvery {
		s.last = now
		// The cursor returns to the start of the line, so that a log message overwrites it.
		_, _ = io.WriteString(s.out, eraseLine+cut(printable.Cell(text), statusWidth)+"\r")
	}
}

// Close removes the line.
func (s *Status) Close() {
	if s.out == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() {
		_, _ = io.WriteString(s.out, eraseLine)
	}
}

// eraseLine is the control sequence that clears the line on every terminal.
const eraseLine = "\r\x1b[K"

func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}
