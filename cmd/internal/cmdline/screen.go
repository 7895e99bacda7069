package cmdline

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// HasSize reports whether a file is a terminal to draw on. One of no lines or columns, as some programs give to what
// they record, shows no bars.
func HasSize(f *os.File) bool {
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}

// Screen is a terminal that lines of text and bars share: text that is written to it appears above the bars. It is safe
// for concurrent use.
type Screen struct {
	w io.Writer

	mu    sync.Mutex
	bars  *mpb.Progress // nil while there is no bar
	count int
}

// NewScreen returns a screen on w, which need not be a terminal if no bars are drawn.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Write writes text, whole lines at a time.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	bars := s.bars
	s.mu.Unlock()
	if bars != nil {
		if n, err := bars.Write(text); err == nil {
			return n, nil
		}
		// The bars have ended meanwhile.
	}
	return s.w.Write(text)
}

// width returns the columns of the terminal, which may change while something is drawn; 80 if it has no size.
func (s *Screen) width() int {
	if f, ok := s.w.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// widest is the width that the library is given: lines are fitted to the terminal before it has them, as it takes only the
// standard streams themselves for terminals.
const widest = 1 << 12

// add draws a line, which is asked for with the width that it may have.
func (s *Screen) add(line func(width int) string) *mpb.Bar {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars == nil {
		s.bars = mpb.New(mpb.WithOutput(fromStart{s.w}), mpb.WithWidth(widest), mpb.WithAutoRefresh())
	}
	s.count++
	// The last column stays free: a terminal that has one more character to show there goes on in the next line.
	return s.bars.New(0, mpb.NopStyle(), mpb.BarRemoveOnComplete(), mpb.BarFillerTrim(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return line(s.width() - 1) })))
}

// fromStart writes from the start of a line what moves the cursor up to draw over the bars: the terminal may have shown
// "^C" meanwhile, behind which the cursor stands.
type fromStart struct{ io.Writer }

func (w fromStart) Write(text []byte) (int, error) {
	if !bytes.HasPrefix(text, []byte("\x1b[")) {
		return w.Writer.Write(text)
	}
	n, err := w.Writer.Write(append([]byte{'\r'}, text...))
	return max(n-1, 0), err
}

// remove removes a bar. The last one takes the drawing with it.
func (s *Screen) remove(bar *mpb.Bar) {
	bar.Abort(true)
	s.mu.Lock()
	bars := s.bars
	if s.count--; s.count > 0 {
		bars = nil
	} else {
		s.bars = nil
	}
	s.mu.Unlock()
	if bars != nil {
		bars.Wait() // draws once more
	}
}
