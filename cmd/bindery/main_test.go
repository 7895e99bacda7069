package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// binDir has the program under all its names, built once for all tests.
var binDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bindery-test-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binDir = dir
		build := exec.Command("go", "build", "-tags", "containers_image_openpgp,exclude_graphdriver_btrfs", "-o",
			filepath.Join(dir, "bindery"), ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
			return 1
		}
		for _, name := range []string{"opm", "grpc_health_probe", "initializer", "registry-server", "oc-mirror",
			kubectlPlugin} {
			if err := os.Symlink("bindery", filepath.Join(dir, name)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		// A slow machine would show lines of progress among what is compared.
		if err := os.Setenv("BINDERY_NO_PROGRESS", "true"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// The tests do not use the user's cache. It is set after the program was built, as Go's build cache is there
		// too.
		if err := os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// result is the result of a run of the program.
type result struct {
	stdout, stderr string
	status         int
}

// command prepares the program under one of its names, in dir, with a clean environment.
func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binDir, name), args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BINDERY_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	return cmd
}

// runProgram runs the program to its end.
func runProgram(t *testing.T, dir, name string, args ...string) result {
	t.Helper()
	return finish(t, command(dir, name, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	answerIsValid(t, cmd.Args, stdout.String())
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// recordedError finds the message in opm's recorded standard error.
func recordedError(t *testing.T, file string) string {
	t.Helper()
	text := readFile(t, file)
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

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// workDir creates a directory with the files that the recorded commands used: a catalog "cat", the database small.db, a
// description, icons.
func workDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "cat"), os.DirFS("testdata/cases/ok-base")); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	for _, f := range []string{"README.md", "icon.png", "icon.svg", "icon.txt"} {
		copyFile(t, "testdata/opm/"+f, filepath.Join(dir, f))
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(readFile(t, from)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// snapshot lists a tree with the sizes of its files.
func snapshot(t *testing.T, dir string) string {
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

// Memory allocated by package initialisation does not trigger a garbage collection before the heap has grown further.
func TestNoCollectionAtStart(t *testing.T) {
	cmd := exec.Command(filepath.Join(binDir, "bindery"), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "gc 1 @") {
		t.Errorf("%v: %s", err, out)
	}
}
