package cmdline

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Tally shows how many of a number of things are done, and the bytes of them, as a bar on a terminal with the rate and
// the time that is left. Elsewhere it draws nothing. It is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex
	bars  *mpb.Progress // nil if nothing is drawn
	bar   *mpb.Bar
	begin time.Time
	state TallyState
}

// TallyState is what a [Tally] shows. AllBytes is what is known so far, which grows while the things are looked at.
type TallyState struct {
	Done, All       int
	Bytes, AllBytes int64
}

// NewTally returns a bar on w; if draw is false it draws nothing.
func NewTally(w io.Writer, draw bool) *Tally {
	t := &Tally{begin: time.Now()}
	if !draw {
		return t
	}
	t.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(32))
	t.bar = t.bars.AddBar(0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return t.text() })))
	return t
}

// Set shows a state.
func (t *Tally) Set(s TallyState) {
	if t.bars == nil {
		return
	}
	t.mu.Lock()
	t.state = s
	t.mu.Unlock()
	t.bar.SetTotal(int64(s.All), false)
	t.bar.SetCurrent(int64(s.Done))
}

// text is the state with the rate and the time that is left, as far as it can be known: by the bytes once everything
// was looked at, and by the number before that.
func (t *Tally) text() string {
	t.mu.Lock()
	s := t.state
	t.mu.Unlock()
	return s.text(time.Since(t.begin))
}

func (s TallyState) text(spent time.Duration) string {
	if s.All == 0 {
		return "looking what there is to do "
	}
	s.AllBytes = max(s.AllBytes, s.Bytes) // what hangs on an image is found while it is copied
	text := fmt.Sprintf("%d of %d, %s of %s", s.Done, s.All, FormatSize(s.Bytes), FormatSize(s.AllBytes))
	if spent < time.Second || s.Done == 0 {
		return text + " "
	}
	text += fmt.Sprintf(", %s/s", FormatSize(int64(float64(s.Bytes)/spent.Seconds())))
	left := time.Duration(float64(spent) * float64(s.All-s.Done) / float64(s.Done))
	return text + fmt.Sprintf(", about %s left ", left.Round(time.Second))
}

// Close removes the bar.
func (t *Tally) Close() {
	if t.bars == nil {
		return
	}
	t.bar.Abort(true)
	t.bars.Wait()
}
