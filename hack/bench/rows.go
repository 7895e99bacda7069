package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// bench is one run of all measurements.
type bench struct {
	options
	dir     string
	in      *inputs
	machine string
	gzip    map[string]sample
	rows    []row
}

// reference is the value that a row is compared with.
type reference struct {
	Name string  `json:"name"`
	By   string  `json:"by"` // how the figures were found
	Wall float64 `json:"wallSeconds"`
	// Least is the shortest wall time of all runs if it was measured here, else equal to Wall.
	Least float64 `json:"leastWallSeconds"`
	CPU   float64 `json:"cpuSeconds"`
	RSS   int64   `json:"peakRSSBytes,omitempty"`
}

// target is the limit that the project promises; zero means none.
type target struct {
	// wall time of the reference divided by that of the command, at least
	Times  float64 `json:"timesFaster,omitempty"`
	RSS    int64   `json:"peakRSSBytes,omitempty"`         // at most
	Writes float64 `json:"writtenPerResultByte,omitempty"` // bytes written to storage per byte of the result, at most
}

// row is one measured command with its verdict.
type row struct {
	What   string     `json:"what"`
	Input  string     `json:"input"`
	Took   sample     `json:"took"`
	Result int64      `json:"resultBytes,omitempty"`
	Ref    *reference `json:"reference,omitempty"`
	Target target     `json:"target"`
	Judged bool       `json:"judged"`
	Missed []string   `json:"missed,omitempty"`
}

func (b *bench) add(r row) {
	r.Judged = r.Target != target{}
	if r.Judged {
		r.Missed = r.misses()
	}
	b.rows = append(b.rows, r)
	fmt.Fprintln(os.Stderr, "measured:", r.What)
}

func (r row) misses() (missed []string) {
	if r.Target.Times > 0 && r.Ref != nil && r.Ref.Wall/r.Took.Wall < r.Target.Times {
		missed = append(missed, "speed")
	}
	if r.Target.RSS > 0 && r.Took.RSS > r.Target.RSS {
		missed = append(missed, "memory")
	}
	if r.Target.Writes > 0 && r.Result > 0 && float64(r.Took.Disk)/float64(r.Result) > r.Target.Writes {
		missed = append(missed, "writes")
	}
	return missed
}

func (b *bench) print(w io.Writer) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw,
		"what\tinput\twall s\tCPU s\tRSS MB\twritten MB\treference\twall s\tCPU s\tRSS MB\ttimes faster: median / "+
			"least / CPU\ttarget\t")
	for _, r := range b.rows {
		fmt.Fprintln(tw, r.text())
	}
	tw.Flush()
	fmt.Fprintf(w,
		"\nMedians of %d runs, RSS the highest of them. Times faster: by the median wall times, which are judged; by "+
			"the least wall times, which\n"+
			"other work on the machine disturbs least; by CPU time. Written: write_bytes of /proc/PID/io (what "+
			"goes to "+
			"storage), and per byte of the result\n"+
			"where there is one. References marked * were measured in turn with the command; the others are recorded "+
			"times * gzip's CPU here / gzip's CPU there.\n"+
			"load average at the end: %s\n", b.runs, loadAverage())
}

func (r row) text() string {
	columns := []string{r.What, r.Input, fmt.Sprintf("%.3f", r.Took.Wall), fmt.Sprintf("%.3f", r.Took.CPU),
		mb(r.Took.RSS), mb(r.Took.Disk)}
	if r.Result > 0 {
		columns[5] += fmt.Sprintf(" (%.2f/B)", float64(r.Took.Disk)/float64(r.Result))
	}
	if r.Ref == nil {
		columns = append(columns, "", "", "", "", "")
	} else {
		name, rss := r.Ref.Name, ""
		if r.Ref.By == measured {
			name += " *"
		}
		if r.Ref.RSS > 0 {
			rss = mb(r.Ref.RSS)
		}
		columns = append(columns, name, fmt.Sprintf("%.3f", r.Ref.Wall), fmt.Sprintf("%.3f", r.Ref.CPU), rss,
			fmt.Sprintf("%.1f / %.1f / %.1f", r.Ref.Wall/r.Took.Wall, r.Ref.Least/r.Took.Least, r.Ref.CPU/r.Took.CPU))
	}
	return strings.Join(append(columns, r.Target.String(), r.verdict()), "\t")
}

func (r row) verdict() string {
	switch {
	case r.Target == target{}:
		return "for comparison"
	case !r.Judged:
		return "not judged"
	case len(r.Missed) == 0:
		return "ok"
	}
	text := "MISSED: " + strings.Join(r.Missed, ", ")
	if slices.Contains(r.Missed, "speed") && r.Ref.Least/r.Took.Least >= r.Target.Times {
		text += " (not in the least disturbed runs)"
	}
	return text
}

func (t target) String() string {
	var parts []string
	if t.Times > 0 {
		parts = append(parts, fmt.Sprintf(">= %gx", t.Times))
	}
	if t.RSS > 0 {
		parts = append(parts, fmt.Sprintf("<= %s MB", mb(t.RSS)))
	}
	if t.Writes > 0 {
		parts = append(parts, fmt.Sprintf("<= %g/B", t.Writes))
	}
	return strings.Join(parts, ", ")
}

// measured is the By of a reference that was measured in this run.
const measured = "measured in turn"

func measuredReference(name string, s sample) *reference {
	return &reference{Name: name, By: measured, Wall: s.Wall, Least: s.Least, CPU: s.CPU, RSS: s.RSS}
}

// mb formats in units of 10^6 bytes.
func mb(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%.1f", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f", float64(n)/1e6)
}

func describeMachine() string {
	model := "processor of unknown model"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("machine: %d x %s, load average %s (the figures want an idle machine)", runtime.NumCPU(), model,
		loadAverage())
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
