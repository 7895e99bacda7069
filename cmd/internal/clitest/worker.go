package clitest

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.podman.io/image/v5/pkg/sysregistriesv2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/rootless"
)

// A start of the program takes longer than most of its commands: the packages of Kubernetes and others set up their tables.
// Runs that end by themselves are therefore calls of [app.Run] in processes that stay, each for one run at a time: the
// directory and the environment are those of a process. What is about a process itself (signals, open files, terminals,
// limits, users, memory) starts one of its own with [exec.Cmd.Start] or [exec.Cmd.Run], or sets SysProcAttr.

// workerName is the name under which the binary of the tests takes runs.
const workerName = "bindery-runs"

// runRequest is a run that a worker is asked for.
type runRequest struct {
	Dir       string
	Args, Env []string
	Stdin     []byte
}

// worker is a process that runs the program as often as it is asked to.
type worker struct {
	cmd   *exec.Cmd
	to    io.WriteCloser
	ask   *gob.Encoder
	hear  *gob.Decoder
	own   *bytes.Buffer // what is written to its standard error beside that of runs
	start string        // the variables that it read when it started
	runs  int
}

// idle has the workers that wait, the last used one last.
var idle struct {
	sync.Mutex
	workers []*worker
}

const (
	// idleAtMost is how many workers wait. More only run while more tests run at once.
	idleAtMost = 4
	// runsAtMost is how many runs a worker takes: what libraries keep of them is freed by its end.
	runsAtMost = 200
)

// readOnce tells whether a variable is read when a process starts, or once by a library, for all that it does later.
func readOnce(name string) bool {
	switch name {
	case "HOME", "TZ":
		return true
	case "CONTAINERS_REGISTRIES_CONF":
		return false // read again after each run
	}
	for _, prefix := range []string{"GO", "SSL_CERT_", "STORAGE_", "CONTAINERS_", "_CONTAINERS", "BUILDAH_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasPrefix(name, "XDG_") && name != "XDG_CACHE_HOME" || strings.HasSuffix(strings.ToLower(name), "_proxy")
}

// startOf returns those variables of an environment, by which a worker is found for a run.
func startOf(env []string) string {
	last := map[string]string{}
	for _, pair := range env {
		if name, value, _ := strings.Cut(pair, "="); readOnce(name) {
			last[name] = value
		}
	}
	var pairs []string
	for name, value := range last {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "\x00")
}

// inWorker tells whether a command is a run that a worker can take.
func inWorker(cmd *exec.Cmd) bool {
	_, file := cmd.Stdin.(*os.File)
	return filepath.Dir(cmd.Path) == BinDir && cmd.SysProcAttr == nil && cmd.ExtraFiles == nil && cmd.Cancel == nil && !file &&
		!rootless.NamesStore(cmd.Args[1:], cmd.Env)
}

// runIn lets a worker run a command to its end.
func runIn(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	dir, err := filepath.Abs(cmd.Dir)
	if err != nil {
		t.Fatal(err)
	}
	q := runRequest{Dir: dir, Args: cmd.Args, Env: cmd.Environ()}
	if cmd.Stdin != nil {
		if q.Stdin, err = io.ReadAll(cmd.Stdin); err != nil {
			t.Fatal(err)
		}
	}
	w, err := takeWorker(startOf(q.Env), q.Env)
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := errors.Join(w.ask.Encode(q), w.hear.Decode(&r)); err != nil {
		// The program has ended the process, as os.Exit and a panic do.
		ended := w.end()
		var exit *exec.ExitError
		if !errors.As(ended, &exit) {
			t.Fatalf("%v: %v, %v", cmd.Args, err, ended)
		}
		return Result{Stderr: w.own.String(), Status: exit.ExitCode()}
	}
	if err := w.release(); err != nil {
		t.Errorf("after its runs the program ended with: %v\n%s", err, w.own)
	}
	return r
}

// takeWorker returns a worker that has started with the same variables, a new one if none waits.
func takeWorker(start string, env []string) (*worker, error) {
	idle.Lock()
	for i := len(idle.workers) - 1; i >= 0; i-- {
		if w := idle.workers[i]; w.start == start {
			idle.workers = slices.Delete(idle.workers, i, i+1)
			idle.Unlock()
			return w, nil
		}
	}
	idle.Unlock()
	w := &worker{cmd: exec.Command(filepath.Join(BinDir, workerName)), own: &bytes.Buffer{}, start: start}
	w.cmd.Env, w.cmd.Stderr = env, w.own
	to, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.to, w.ask, w.hear = to, gob.NewEncoder(to), gob.NewDecoder(from)
	return w, w.cmd.Start()
}

// release lets a worker wait for its next run. The error is that of one that ends, as it is old or too many wait.
func (w *worker) release() error {
	old := w
	if w.runs++; w.runs < runsAtMost {
		old = nil
		idle.Lock()
		idle.workers = append(idle.workers, w)
		if len(idle.workers) > idleAtMost {
			old = idle.workers[0]
			idle.workers = slices.Delete(idle.workers, 0, 1)
		}
		idle.Unlock()
	}
	if old == nil {
		return nil
	}
	return old.end()
}

// end lets a worker end, and returns how it did.
func (w *worker) end() error {
	return errors.Join(w.to.Close(), w.cmd.Wait())
}

// endWorkers ends those that wait.
func endWorkers() (err error) {
	idle.Lock()
	defer idle.Unlock()
	for _, w := range idle.workers {
		err = errors.Join(err, w.end())
	}
	idle.workers = nil
	return err
}

// serveRuns is what the process of a worker does: it reads requests from standard input, and writes results to standard
// output. It ends with its input, also during a run.
func serveRuns() {
	rootless.StoreHelper() // says to the storage library that it may start this program
	out := os.Stdout
	os.Stdout = os.Stderr // of what does not write to the streams that it is given
	requests := make(chan runRequest)
	go func() {
		for in := gob.NewDecoder(os.Stdin); ; {
			var q runRequest
			if in.Decode(&q) != nil {
				os.Exit(0)
			}
			requests <- q
		}
	}()
	for answers := gob.NewEncoder(out); ; {
		r, err := runHere(<-requests)
		if err == nil {
			err = answers.Encode(r)
		}
		if err != nil {
			panic(err)
		}
	}
}

// runHere is one run in this process.
func runHere(q runRequest) (Result, error) {
	os.Clearenv()
	err := os.Chdir(q.Dir)
	for _, pair := range q.Env {
		name, value, _ := strings.Cut(pair, "=")
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err != nil {
		return Result{}, err
	}
	sysregistriesv2.InvalidateCache()
	debug.SetMemoryLimit(math.MaxInt64)
	var stdout, stderr bytes.Buffer
	status := app.Run(q.Args, bytes.NewReader(q.Stdin), &stdout, &stderr)
	return Result{stdout.String(), stderr.String(), status}, nil
}
