package serve

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// writeProcess adds metrics from /proc. Unreadable ones are omitted.
func writeProcess(t *promText) {
	if fds, ok := openFiles(); ok {
		t.single("process_open_fds", "gauge", "Open file descriptors.", float64(fds))
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		t.single("process_max_fds", "gauge", "How many file descriptors may be open.", float64(limit.Cur))
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		seconds := func(v syscall.Timeval) float64 { return float64(v.Nano()) / 1e9 }
		t.single("process_cpu_seconds_total", "counter", "Processor time.", seconds(use.Utime)+seconds(use.Stime))
	}
	if bytes, ok := residentBytes(); ok {
		t.single("process_resident_memory_bytes", "gauge", "Resident memory.", float64(bytes))
	}
}

// openFiles counts the open file descriptors, without the one used for counting.
func openFiles() (int, bool) {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names) - 1, err == nil
}

func residentBytes() (int64, bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(text, []byte("\nVmRSS:"))
	line, _, _ := strings.Cut(string(rest), "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n << 10, ok && err == nil
}
