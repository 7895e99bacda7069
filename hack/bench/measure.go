package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// sample is the cost of one run of a command.
type sample struct {
	Wall   float64 `json:"wallSeconds"`
	Least  float64 `json:"leastWallSeconds,omitempty"` // of all runs: what other work on the machine disturbed least
	CPU    float64 `json:"cpuSeconds"`                 // user and system, of the process and the children it waited for
	RSS    int64   `json:"peakRSSBytes"`
	Disk   int64   `json:"writeBytes"` // write_bytes of /proc/PID/io: what was caused to be sent to storage; 0 on tmpfs
	Called int64   `json:"wchar"`      // wchar of /proc/PID/io: bytes passed to write calls, including pipes
}

// command is a program to measure. Before is called before each run and is not measured.
type command struct {
	args   []string
	env    []string
	dir    string
	before func() error
	after  func() error
	logs   bool // it says on standard output why it fails
}

// once runs the command and measures it.
func (c command) once(ctx context.Context) (sample, error) {
	if c.before != nil {
		if err := c.before(); err != nil {
			return sample{}, err
		}
	}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if c.logs {
		cmd.Stdout = &stderr
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	waitUntilEnded(cmd.Process.Pid)
	s := sample{Wall: time.Since(start).Seconds()}
	s.Disk, s.Called = written(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		return s, fmt.Errorf("%s: %w: %s", strings.Join(c.args, " "), err, c.why(stderr.String()))
	}
	s.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.RSS = usage.Maxrss * 1024 // Linux counts KiB
	}
	if c.after != nil {
		return s, c.after()
	}
	return s, nil
}

// median runs the commands in turn, so that load on the machine affects all of them alike, and returns the median of
// each figure. One run before that warms the page cache.
func median(ctx context.Context, runs int, commands ...command) ([]sample, error) {
	all := make([][]sample, len(commands))
	for run := range runs + 1 {
		for i, c := range commands {
			s, err := c.once(ctx)
			if err != nil {
				return nil, err
			}
			if run > 0 {
				all[i] = append(all[i], s)
			}
		}
	}
	var result []sample
	for _, samples := range all {
		result = append(result, sample{
			Wall:  middle(samples, func(s sample) float64 { return s.Wall }),
			Least: slices.MinFunc(samples, func(a, b sample) int { return cmp.Compare(a.Wall, b.Wall) }).Wall,
			CPU:   middle(samples, func(s sample) float64 { return s.CPU }),
			// A memory ceiling holds for every run: the highest value counts, not the median.
			RSS:    slices.MaxFunc(samples, func(a, b sample) int { return cmp.Compare(a.RSS, b.RSS) }).RSS,
			Disk:   middle(samples, func(s sample) int64 { return s.Disk }),
			Called: middle(samples, func(s sample) int64 { return s.Called }),
		})
	}
	return result, nil
}

func middle[T int64 | float64](samples []sample, of func(sample) T) T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// waitUntilEnded returns when the process has ended and does not reap it: /proc/PID/io exists until then.
func waitUntilEnded(pid int) {
	const byPID, exited, noReap = 1, 4, 0x1000000 // P_PID, WEXITED, WNOWAIT of waitid(2)
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			exited|noReap, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

func written(pid int) (disk, called int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "write_bytes":
			disk = n
		case "wchar":
			called = n
		}
	}
	return disk, called
}

// why returns the last line of what the command has said, or its last lines.
func (c command) why(text string) string {
	if c.logs {
		return text[max(0, len(text)-2000):]
	}
	return lastLine(text)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
