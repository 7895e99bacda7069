package cmdline

import (
	"io"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/printable"
)

// How wide a status line may be, and how often it changes.
const (
	statusWidth = 78
	statusEvery = 100 * time.Millisecond
)

// Status is a line on a terminal that says what is being done now. It is drawn over, so that nothing of it stays. It is
// safe for concurrent use.
type Status struct {
	mu   sync.Mutex
	out  io.Writer // nil where nothing is drawn
	last time.Time
}

// NewStatus draws on w; where draw is false it draws nothing.
func NewStatus(w io.Writer, draw bool) *Status {
	s := &Status{}
	if draw {
		s.out = w
	}
	return s
}

// Set shows the text, unless the line changed only just now. Text from outside may be in it. Errors are of no interest:
// the line is decoration.
func (s *Status) Set(text string) {
	if s.out == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.last) >= statusEvery {
		s.last = now
		// The cursor goes back to the start of the line, so that a message of the log replaces it.
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

// eraseLine is the control sequence that every terminal has for it.
const eraseLine = "\r\x1b[K"

func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}
