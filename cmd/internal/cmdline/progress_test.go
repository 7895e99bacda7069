package cmdline

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-runewidth"
)

func TestStateText(t *testing.T) {
	for _, c := range []struct {
		state State
		spent time.Duration
		want  string
	}{
		{State{What: "mirroring"}, time.Second, "mirroring"},
		{State{Done: 0, All: 4, AllBytes: 2048}, 5 * time.Second, "0 of 4, 0 B of 2 KiB"},
		{State{What: "uploading", Units: "blobs", Done: 1, All: 4, Bytes: 1024, AllBytes: 4096}, 10 * time.Second,
			"uploading: 1 of 4 blobs, 1 KiB of 4 KiB, 102 B/s, about 30s left"},
		{State{Done: 1, All: 40, Bytes: 1024, AllBytes: 4096, Counting: true}, 10 * time.Second,
			"1 of 40, 1 KiB of at least 4 KiB, 102 B/s"},
		{State{Done: 1, All: 2, Bytes: 3072, AllBytes: 2048}, time.Millisecond, "1 of 2, 3 KiB of 3 KiB"},
		{State{Done: 3, Units: "layers", Now: "a\x1b[31m" + strings.Repeat("x", 200)}, time.Minute,
			"3 layers, a\\x1b[31m" + strings.Repeat("x", 30) + "…"},
		{State{What: "writing", Units: "packages", Done: 2, All: 4, Now: "etcd"}, 10 * time.Second,
			"writing: 2 of 4 packages, about 10s left, etcd"},
		{State{What: "verifying", Units: "packages", Done: 1, All: 39}, 7 * time.Second, "verifying: 1 of 39 packages"},
		{State{What: "verifying", Units: "packages", Done: 4, All: 39}, 8 * time.Second,
			"verifying: 4 of 39 packages, about 1m10s left"},
		{State{What: "verifying", Units: "packages", Done: 3, All: 300}, time.Minute,
			"verifying: 3 of 300 packages, about 1h39m0s left"},
	} {
		if got := c.state.text(c.spent); got != c.want {
			t.Errorf("%+v: %q instead of %q", c.state, got, c.want)
		}
	}
}

// In any width a person sees how many of how many, the bytes, the rate and the time that is left.
func TestStateFits(t *testing.T) {
	state := State{What: "mirroring", Done: 27, All: 408, Units: "images", Bytes: 1288490188, AllBytes: 8912896000, Now: "quay.io/a/b"}
	counting := state
	counting.Counting = true
	for _, c := range []struct {
		state State
		width int
		want  string
	}{
		{state, 160, "mirroring: 27 of 408 images, 1.2 GiB of 8.3 GiB, 12.3 MiB/s, about 9m52s left, quay.io/a/b [==>-------------------]"},
		{state, 110, "mirroring: 27 of 408 images, 1.2 GiB of 8.3 GiB, 12.3 MiB/s, about 9m52s left [==>-------------------]"},
		{state, 100, "mirroring: 27 of 408 images, 1.2 GiB of 8.3 GiB, 12.3 MiB/s, about 9m52s left"},
		{state, 70, "mirroring: 27/408 images, 1.2/8.3 GiB, 12.3 MiB/s, 9m52s left"},
		{state, 59, "mirroring: 27/408 images 1.2/8.3 GiB 12.3 MiB/s 9m52s left"},
		{state, 52, "mirroring: 27/408 1.2/8.3 GiB 12.3 MiB/s 9m52s left"},
		{state, 45, "27/408 1.2/8.3 GiB 12.3 MiB/s 9m52s left"},
		{state, 20, "27/408 1.2/8.3 GiB …"},
		{counting, 60, "mirroring: 27/408 images, 1.2/>8.3 GiB, 12.3 MiB/s"},
		{State{What: "reading", Done: 3, Units: "files"}, 60, "reading: 3 files"},
		{State{What: "packing", Done: 1, All: 1}, 60, "packing: 1 of 1 [======================]"},
		{State{What: "packing", All: 9}, 60, "packing: 0 of 9 [----------------------]"},
	} {
		if got := c.state.fit(100*time.Second, c.width); got != c.want || runewidth.StringWidth(got) > c.width {
			t.Errorf("%d columns:\n%q instead of\n%q", c.width, got, c.want)
		}
	}
}

// Without a terminal there is a line every five seconds, and none for a short task.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := NewProgress(nil, func(text string) { lines = append(lines, text) })
		for n := range 12 {
			p.Set(State{What: "packing", Done: n, All: 12, Units: "layers"})
			time.Sleep(1100 * time.Millisecond)
		}
		p.Close()
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "packing: 4 of 12 layers, about ") {
			t.Errorf("%q", lines)
		}
	})
}

// What takes long without a change is shown all the same, and only until it ends.
func TestProgressWithoutChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := NewProgress(nil, func(text string) { lines = append(lines, text) })
		p.Set(State{What: "loading"})
		time.Sleep(11 * time.Second)
		p.Close()
		time.Sleep(time.Minute)
		if len(lines) != 2 || lines[0] != "loading" {
			t.Errorf("%q", lines)
		}
	})
}

// Behind the "^C" of a terminal the bar is drawn over from the start of its line.
func TestBarsAreClearedFromTheStartOfTheLine(t *testing.T) {
	var b bytes.Buffer
	n, err := fromStart{&b}.Write([]byte("\x1b[1A\x1b[J"))
	if n != len("\x1b[1A\x1b[J") || err != nil || !strings.HasSuffix(b.String(), "\r\x1b[1A\x1b[J") {
		t.Errorf("%d %v %q", n, err, b.String())
	}
}

// A terminal without a size, as "script" makes one where there is none, shows nothing that is drawn.
func TestHasSize(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if HasSize(f) {
		t.Error("a file that is no terminal has a size")
	}
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer pty.Close()
	if HasSize(pty) {
		t.Error("a new terminal has a size")
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(NewScreen(&b), func(string) { t.Error("a line beside the bar") })
	p.after = 0
	p.Set(State{What: "packing", Done: 1, All: 2})
	p.Update(func(s *State) { s.Done++ })
	p.Close()
	p.Close()
	b.Reset()
	q := NewProgress(nil, nil)
	q.Set(State{What: "packing"})
	q.Close()
	if b.Len() > 0 {
		t.Errorf("drawn where nothing may be: %q", b.String())
	}
}

// The bar draws itself while states come.
func TestProgressIsDrawnWhileItChanges(t *testing.T) {
	p := NewProgress(NewScreen(io.Discard), nil)
	p.after = 0
	for n := range 20_000 {
		p.Set(State{What: "packing", Done: n, All: 20_000})
	}
	p.Close()
}

// Text that is written while bars are drawn is not lost, whatever the bars draw over.
func TestTextAboveBars(t *testing.T) {
	var mu sync.Mutex
	var b bytes.Buffer
	screen := NewScreen(writerFunc(func(text []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(text)
	}))
	one, two := NewProgress(screen, nil), NewProgress(screen, nil)
	one.after, two.after = 0, 0
	for n := range 50 {
		one.Set(State{What: "packing", Done: n, All: 50})
		two.Set(State{What: "reading", Done: n, All: 50})
		fmt.Fprintf(screen, "line %d\n", n)
	}
	one.Close()
	fmt.Fprintln(screen, "between")
	two.Close()
	fmt.Fprintln(screen, "behind")
	got := b.String()
	for n := range 50 {
		if strings.Count(got, fmt.Sprintf("line %d\n", n)) != 1 {
			t.Errorf("line %d is missing or repeated", n)
		}
	}
	if !strings.Contains(got, "between\n") || !strings.HasSuffix(got, "behind\n") {
		t.Errorf("%q", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
