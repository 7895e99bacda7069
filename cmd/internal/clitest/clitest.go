// Package clitest runs the program in tests of its commands, as users run it, and has what several of these tests need:
// directories to work in, registries, and answers that were recorded.
package clitest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// BinDir has the program under all its names, built once for all tests.
var BinDir string

// Names are those under which the program can be started.
var Names = []string{"bindery", "opm", "grpc_health_probe", "initializer", "registry-server", "oc-mirror",
	program.KubectlPlugin}

// Main runs the tests of a package, for its TestMain. The binary of the tests is the program too: started under another
// name than that of a test, as by the links in BinDir, it does what the program does. What is covered by the program
// counts for the tests of the package.
func Main(m *testing.M) {
	switch base := filepath.Base(os.Args[0]); {
	case base == workerName:
		serveRuns()
	case !strings.HasSuffix(strings.TrimSuffix(base, ".exe"), ".test"):
		app.Main()
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bindery-test-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		BinDir = dir
		self, err := os.Executable()
		if err == nil {
			err = linkOrCopy(self, filepath.Join(dir, Names[0]))
		}
		for _, name := range append([]string{workerName}, Names[1:]...) {
			err = errors.Join(err, os.Symlink(Names[0], filepath.Join(dir, name)))
		}
		// Go's cache is below the user's, unless the environment names it: what tests build is compiled once for all.
		if user, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
			os.Setenv("GOCACHE", filepath.Join(user, "go-build"))
		}
		// A slow machine would show lines of progress among what is compared, and tests do not use the user's cache.
		for name, value := range map[string]string{"BINDERY_NO_PROGRESS": "true", "XDG_CACHE_HOME": filepath.Join(dir, "cache")} {
			err = errors.Join(err, os.Setenv(name, value))
		}
		flag.Parse()
		if covered := flag.Lookup("test.gocoverdir"); covered != nil && covered.Value.String() != "" {
			err = errors.Join(err, os.Setenv("GOCOVERDIR", covered.Value.String()))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		status := m.Run()
		if err := endWorkers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return status
	}())
}

// linkOrCopy gives a program another place.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// BuildServer builds the program that is in catalog images.
func BuildServer(t *testing.T, file string) {
	t.Helper()
	build := exec.Command("go", "build", "-trimpath", "-tags", "containers_image_openpgp,exclude_graphdriver_btrfs", "-ldflags=-s -w",
		"-o", file, "github.com/operator-bindery/bindery/cmd/opm-server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Result is the result of a run of the program.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// Command prepares the program under one of its names, in dir, with a clean environment.
func Command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(BinDir, name), args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BINDERY_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	return cmd
}

// RunProgram runs the program to its end.
func RunProgram(t testing.TB, dir, name string, args ...string) Result {
	t.Helper()
	return Finish(t, Command(dir, name, args...))
}

// Finish runs a command that [Command] has prepared to its end, in a process of its own only if it needs one.
func Finish(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	if !inWorker(cmd) {
		return FinishProcess(t, cmd)
	}
	r := runIn(t, cmd)
	answerIsValid(t, cmd.Args, r.Stdout)
	return r
}

// FinishProcess runs a command to its end in a process of its own, whose state can be asked afterwards.
func FinishProcess(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	answerIsValid(t, cmd.Args, stdout.String())
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// RecordedError finds the message in opm's recorded standard error.
func RecordedError(t *testing.T, file string) string {
	t.Helper()
	text := ReadFile(t, file)
	if m := regexp.MustCompile(`level=fatal msg=("(?:[^"\\]|\\.)*")`).FindStringSubmatch(text); m != nil {
		message, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return "level=fatal msg=" + strconv.Quote(message)
	}
	if m := regexp.MustCompile(`(?m)^Error: .*$`).FindString(text); m != "" {
		return m
	}
	if m := regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (.*)`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	t.Fatalf("no error in %s", file)
	return ""
}

func ReadFile(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// WorkDir creates a directory with the files that the recorded commands used: a catalog "cat", the database small.db, a
// description, icons.
func WorkDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "cat"), os.DirFS("../clitest/testdata/cases/ok-base")); err != nil {
		t.Fatal(err)
	}
	CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	for _, f := range []string{"README.md", "icon.png", "icon.svg", "icon.txt"} {
		CopyFile(t, "../clitest/testdata/opm/"+f, filepath.Join(dir, f))
	}
	return dir
}

func CopyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(ReadFile(t, from)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Snapshot lists a tree with the sizes of its files.
func Snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		size := info.Size()
		if d.IsDir() {
			size = 0
		}
		fmt.Fprintf(&b, "%s %s %d\n", rel, info.Mode(), size)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
