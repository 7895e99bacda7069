package cmdline

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows the progress of a task as a bar on a terminal. Elsewhere it draws nothing. It is safe for concurrent
// use.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer // nil if nothing is drawn
	bars  *mpb.Progress
	bar   *mpb.Bar
	label string
	total int64
	parts map[string]int64
}

// NewProgress returns a bar on w; if draw is false it draws nothing.
func NewProgress(w io.Writer, draw bool) *Progress {
	p := &Progress{parts: map[string]int64{}}
	if draw {
		p.out = w
	}
	return p
}

// Add adds size bytes to the total; a new label starts a new bar.
func (p *Progress) Add(label string, size int64) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil || p.label != label {
		p.finish()
		p.label, p.total = label, 0
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(48))
		p.bar = p.bars.AddBar(0, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(label+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
	}
	p.total += size
	p.bar.SetTotal(p.total, false)
}

// Set sets the number of completed bytes of the part id.
func (p *Progress) Set(id string, done int64) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && done > p.parts[id] {
		p.bar.IncrInt64(done - p.parts[id])
		p.parts[id] = done
	}
}

// Close removes the bar.
func (p *Progress) Close() {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
}

func (p *Progress) finish() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
	p.bar, p.bars, p.parts = nil, nil, map[string]int64{}
}
