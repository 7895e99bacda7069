//go:build hostile

package hostile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The classes of errors in "--error-format json".
const (
	usage     = 2
	input     = 3
	network   = 4
	integrity = 5
	limit     = 6
	local     = 7
	conflict  = 8
)

// The maximum cost of a refused case.
const maxMemory = 256 << 20

// maxTime is 5 seconds, multiplied by HOSTILE_SLACK on a loaded machine.
var maxTime = func() time.Duration {
	slack, err := strconv.Atoi(os.Getenv("HOSTILE_SLACK"))
	if err != nil {
		slack = 1
	}
	return time.Duration(slack) * 5 * time.Second
}()

// bindery is the attacked program; canary is a file that no attack may change.
var bindery, canary string

const secret = "canary-secret-4711"

func TestMain(m *testing.M) {
	if addr := os.Getenv(listerAddress); addr != "" {
		os.Exit(listForever(addr))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "hostile-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		// Runs under other uids start the program from this directory.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if bindery, err = program(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// program returns the file in HOSTILE_BINDERY, or builds one.
func program(dir string) (string, error) {
	path := filepath.Join(dir, "bindery")
	if from := os.Getenv("HOSTILE_BINDERY"); from != "" {
		data, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		return path, os.WriteFile(path, data, 0o755)
	}
	build := exec.Command("go", "build", "-tags", "containers_image_openpgp,exclude_graphdriver_btrfs", "-o", path,
		"../../cmd/bindery")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

// box is the environment of a run: a working directory, an empty home, a directory for temporary files, and a canary
// next to them.
type box struct {
	t                       *testing.T
	dir, tmp, home, canary  string
	env                     []string
	before                  string
	keepsTemp, growsAllowed bool
}

func newBox(t *testing.T) *box {
	t.Helper()
	return boxIn(t, t.TempDir())
}

func boxIn(t *testing.T, root string) *box {
	t.Helper()
	b := &box{t: t, dir: filepath.Join(root, "work"), tmp: filepath.Join(root, "tmp"),
		home: filepath.Join(root, "home"), canary: filepath.Join(root, "canary")}
	for _, d := range []string{b.dir, b.tmp, b.home, b.canary} {
		check(t, os.Mkdir(d, 0o755))
	}
	check(t, os.WriteFile(filepath.Join(b.canary, "secret"), []byte(secret), 0o600))
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "TMPDIR=" + b.tmp, "XDG_RUNTIME_DIR=" + b.home,
		"GOTRACEBACK=all"}
	return b
}

// write creates a file in the working directory.
func (b *box) write(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	check(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(b.t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// outcome is the result of a run.
type outcome struct {
	stdout, stderr string
	status         int
	signal         syscall.Signal
	memory         int64
	took           time.Duration
	class          int
	message        string
}

func (b *box) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bindery, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

func (b *box) run(args ...string) outcome {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return b.finish(b.command(ctx, args...))
}

func (b *box) finish(cmd *exec.Cmd) outcome {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	start := time.Now()
	check(b.t, cmd.Start())
	memory := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode(),
		took: time.Since(start)}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.signal = ws.Signal()
	}
	o.memory = memory()
	lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
	var e struct {
		Class   int
		Message string
	}
	if json.Unmarshal([]byte(lines[len(lines)-1]), &e) == nil {
		o.class, o.message = e.Class, e.Message
	}
	if strings.Contains(o.stderr, "goroutine ") && strings.Contains(o.stderr, "panic") || strings.Contains(o.stderr,
		"fatal error: ") {
		b.t.Errorf("%q crashed:\n%.3000s", cmd.Args[1:], o.stderr)
	}
	return o
}

var highWater = regexp.MustCompile(`VmHWM:\s+([0-9]+) kB`)

// watchMemory samples the peak memory of a process until the returned function is called, which returns the peak. The
// peak that the system reports for an exited process includes that of its parent.
func watchMemory(pid int) func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if m := highWater.FindSubmatch(data); err == nil && m != nil {
				if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
					most = max(most, n<<10)
				}
			}
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(stop); return <-peak }
}

// snapshot describes everything except the temporary files and the cache directory, which any command may fill.
func (b *box) snapshot() string {
	return fingerprint(b.t, b.dir) + fingerprint(b.t, b.canary) + fingerprint(b.t, b.home)
}

// refused runs the program and requires that it refuses the case properly. It returns the outcome.
func (b *box) refused(class int, text string, args ...string) outcome {
	b.t.Helper()
	before := b.snapshot()
	o := b.run(append([]string{"--error-format=json"}, args...)...)
	label := strings.Join(args, " ")
	b.inBudget(label, o)
	if o.status != 1 {
		b.t.Errorf("%s: status %d (signal %v), want 1; stderr %.500q", label, o.status, o.signal, o.stderr)
	}
	if o.stdout != "" {
		b.t.Errorf("%s: wrote %.200q to standard output", label, o.stdout)
	}
	if o.class != class {
		b.t.Errorf("%s: class %d, want %d: %.500s", label, o.class, class, o.stderr)
	}
	if !regexp.MustCompile(text).MatchString(o.message) {
		b.t.Errorf("%s: message %.500q lacks %q", label, o.message, text)
	}
	if strings.ContainsAny(o.stderr, "\x1b\x00\x07") || strings.Contains(o.stderr, secret) {
		b.t.Errorf("%s: raw control characters or a secret on standard error: %.300q", label, o.stderr)
	}
	if len(o.stderr) > 20_000 {
		b.t.Errorf("%s: %d bytes on standard error", label, len(o.stderr))
	}
	b.unchanged(label, before)
	return o
}

// accepted runs the program and requires success within the limits.
func (b *box) accepted(args ...string) outcome {
	b.t.Helper()
	o := b.run(append([]string{"--error-format=json"}, args...)...)
	label := strings.Join(args, " ")
	b.inBudget(label, o)
	if o.status != 0 {
		b.t.Errorf("%s: status %d: %.500s", label, o.status, o.stderr)
	}
	b.noTemp(label)
	return o
}

func (b *box) inBudget(label string, o outcome) {
	b.t.Helper()
	if o.memory > maxMemory {
		b.t.Errorf("%s: %d MB of memory", label, o.memory>>20)
	}
	if o.took > maxTime {
		b.t.Errorf("%s: took %s", label, o.took)
	}
}

// unchanged requires that only the directory for temporary files was touched, and that it is empty.
func (b *box) unchanged(label, before string) {
	b.t.Helper()
	if after := b.snapshot(); after != before {
		b.t.Errorf("%s: files changed:%.2000s", label, difference(before, after))
	}
	b.noTemp(label)
}

// difference returns the lines that are only in one of two fingerprints.
func difference(before, after string) string {
	var out string
	count := map[string]int{}
	for _, l := range strings.Split(before, "\n") {
		count[l]--
	}
	for _, l := range strings.Split(after, "\n") {
		count[l]++
	}
	for _, l := range slices.Sorted(maps.Keys(count)) {
		switch n := count[l]; {
		case n < 0:
			out += "\n- " + l
		case n > 0:
			out += "\n+ " + l
		}
	}
	return out
}

func (b *box) noTemp(label string) {
	b.t.Helper()
	if left := names(b.t, b.tmp); len(left) > 0 {
		b.t.Errorf("%s: left in the temporary directory: %q", label, left)
	}
}

// fingerprint lists a tree with modes, sizes, change times and digests, without cache directories.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".cache" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", rel, info.Mode())
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, " %d", info.Size())
			if info.Size() < 64<<20 {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %x", sha256.Sum256(data))
			}
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			b.WriteString(" -> " + to)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// need skips the test if a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

// needRoot skips the test if it cannot mount or change its uid.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
