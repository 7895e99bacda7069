package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/printable"
)

// server is a server process started by this program.
type server struct {
	addr    string
	process *os.Process
	errors  *os.File // its standard error
	started time.Time
}

// startServer starts a program on a free port; args[0] is its path. It does not wait until the server is ready.
func startServer(args []string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	s := &server{addr: addr}
	if s.errors, err = os.CreateTemp("", "load-server-*"); err != nil {
		return nil, err
	}
	os.Remove(s.errors.Name())
	s.started = time.Now()
	s.process, err = os.StartProcess(args[0], append(slices.Clone(args), "--port", port),
		&os.ProcAttr{Files: []*os.File{nil, nil, s.errors}})
	if err != nil {
		s.errors.Close()
		return nil, err
	}
	return s, nil
}

// stop stops the server and returns its CPU seconds.
func (s *server) stop() float64 {
	s.process.Kill()
	state, err := s.process.Wait()
	s.errors.Close()
	if err != nil {
		return 0
	}
	return (state.UserTime() + state.SystemTime()).Seconds()
}

// failed adds the output of the server to an error.
func (s *server) failed(err error) error {
	output := make([]byte, 1<<10)
	n, _ := s.errors.ReadAt(output, 0)
	return fmt.Errorf("%w; server output: %s", err, printable.Text(string(output[:n])))
}

// usage is the resource usage of a process from /proc; zeros if unavailable.
type usage struct {
	rss, peak int64
	files     int
	cpu       float64
}

func process(pid int) (u usage) {
	if pid == 0 {
		return u
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, _ := os.ReadFile(dir + "status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "VmRSS":
			u.rss = kb << 10
		case "VmHWM":
			u.peak = kb << 10
		}
	}
	if names, err := os.ReadDir(dir + "fd"); err == nil {
		u.files = len(names)
	}
	stat, _ := os.ReadFile(dir + "stat")
	if _, rest, ok := strings.Cut(string(stat), ") "); ok {
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.ParseFloat(fields[11], 64)
			system, _ := strconv.ParseFloat(fields[12], 64)
			u.cpu = (user + system) / 100 // clock ticks; Linux has 100 a second
		}
	}
	return u
}

// starts starts the server several times and prints the medians.
func starts(ctx context.Context, o options) (*result, error) {
	var listening, serving, answer, cpu []float64
	r := &result{Mode: "start"}
	var request *key
	for run := range o.runs + 1 {
		s, err := startServer(o.server)
		if err != nil {
			return nil, err
		}
		t := &target{addr: s.addr, pid: s.process.Pid, decode: true}
		at, err := t.ready(ctx)
		if err == nil && request == nil {
			// The first start also finds the keys to request and warms the page cache.
			if err = t.findKeys(ctx); err == nil {
				request = &t.keys[0]
			}
		}
		if err == nil {
			err = t.getOnce(ctx, *request)
		}
		answered := time.Since(s.started)
		u := process(t.pid)
		if err != nil {
			err = s.failed(err)
		}
		used := s.stop()
		if err != nil {
			return nil, err
		}
		if run == 0 {
			continue
		}
		listening = append(listening, at.listening.Sub(s.started).Seconds())
		serving = append(serving, at.serving.Sub(s.started).Seconds())
		answer = append(answer, answered.Seconds())
		cpu = append(cpu, used)
		r.RSSAfter, r.RSSPeak, r.Files = max(r.RSSAfter, u.rss), max(r.RSSPeak, u.peak), max(r.Files, u.files)
	}
	r.Listening, r.Serving, r.FirstAnswer, r.StartCPU = median(listening), median(serving), median(answer), median(cpu)
	return r, nil
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
