package app_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

func TestGroupsAndNothing(t *testing.T) {
	for _, args := range []string{"", "--help", "help", "help list", "list --help", "list packages --help",
		"help build"} {
		got := clitest.RunProgram(t, ".", "bindery", strings.Fields(args)...)
		if got.Status != 0 || !strings.Contains(got.Stdout, "Usage:\n  bindery") || got.Stderr != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for _, args := range []string{"list", "generate", "alpha list", "build"} {
		got := clitest.RunProgram(t, ".", "bindery", strings.Fields(args)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "needs a command: ") ||
			!strings.Contains(got.Stderr, "usage: bindery "+args+" COMMAND") {
			t.Errorf("%q: %+v", args, got)
		}
		if got := clitest.RunProgram(t, ".", "opm", strings.Fields(args)...); strings.HasPrefix(args,
			"g") && (got.Status != 0 || got.Stdout == "") {
			t.Errorf("opm %q: %+v", args, got)
		}
	}
}

func TestErrorAsJSON(t *testing.T) {
	dir := clitest.WorkDir(t)
	for args, class := range map[string]int{
		"nosuch --error-format json":                                                     2,
		"--error-format=json render":                                                     2,
		"validate nosuch --error-format json":                                            7,
		"render icon.txt --error-format json":                                            3,
		"list packages cat/../badcat --error-format=json":                                3,
		"init p -i huge --error-format json":                                             6,
		"list packages damaged.db --error-format json":                                   5,
		"build catalog cat --push -t 127.0.0.1:1/a/b:v1 --retries 0 --error-format json": 4,
	} {
		if err := os.CopyFS(filepath.Join(dir, "badcat"),
			os.DirFS("../clitest/testdata/cases/bad-two-heads")); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "huge"), make([]byte, 5<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		db := []byte(clitest.ReadFile(t, filepath.Join(dir, "small.db")))
		if err := os.WriteFile(filepath.Join(dir, "damaged.db"), db[:len(db)-20000], 0o644); err != nil {
			t.Fatal(err)
		}
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...)
		var e struct {
			Class                 int
			Message, Object, Hint *string
		}
		lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || got.Status != 1 || got.Stdout != "" {
			t.Errorf("%s: %+v (%v)", args, got, err)
			continue
		}
		if e.Class != class || e.Message == nil || *e.Message == "" || e.Object == nil || e.Hint == nil {
			t.Errorf("%s: want class %d, got %s", args, class, got.Stderr)
		}
	}
}

func TestEnvironmentSetsFlags(t *testing.T) {
	cmd := clitest.Command(".", "bindery", "validate", "../clitest/testdata/cases/ok-base")
	cmd.Env = append(cmd.Env, "BINDERY_QUIET=true")
	if got := clitest.Finish(t, cmd); got.Status != 0 || got.Stderr != "" {
		t.Errorf("quiet: %+v", got)
	}
	cmd = clitest.Command(".", "bindery", "validate", "nosuch")
	cmd.Env = append(cmd.Env, "BINDERY_ERROR_FORMAT=json")
	if got := clitest.Finish(t, cmd); !strings.HasPrefix(got.Stderr, `{"class":7,`) {
		t.Errorf("errors as JSON: %+v", got)
	}
	cmd = clitest.Command(".", "bindery", "validate", "../clitest/testdata/cases/ok-base", "--log-format", "json")
	if got := clitest.Finish(t, cmd); !json.Valid([]byte(got.Stderr)) {
		t.Errorf("log as JSON: %+v", got)
	}
}

func TestNoEscapesReachTheTerminal(t *testing.T) {
	dir := t.TempDir()
	evil := "a\x1b[31m\u202e"
	catalog := `{"schema":"olm.package","name":"` + `a\u001b[31m\u202e` + `","defaultChannel":"x"}`
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(catalog), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bindery", "opm"} {
		for _, args := range [][]string{{evil}, {"validate", evil}, {"render", "--" + evil}, {"render", evil},
			{"validate", dir}, {"list", "packages", dir},
			{"generate", "dockerfile", evil}, {"build", "catalog", evil, "-t", evil}, {"init", evil, "-o", evil}} {
			got := clitest.RunProgram(t, dir, name, args...)
			if got.Status == 0 || strings.ContainsAny(got.Stderr, "\x1b\u202e") {
				t.Errorf("%s %q: %+v", name, args, got)
			}
		}
	}
}

func TestBrokenPipe(t *testing.T) {
	cmd := clitest.Command(".", "bindery", "render", "../../../testdata/db/small.db")
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	err = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 141 || stderr.Len() > 0 {
		t.Errorf("status %d (%v), %s", status, err, stderr.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A build that pushes to a registry that never answers is ended by a signal.
func TestSignals(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		status int
	}{
		"SIGINT": {syscall.SIGINT, 130}, "SIGTERM": {syscall.SIGTERM, 143}, "SIGHUP": {syscall.SIGHUP, 129},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			temp := t.TempDir()
			silent, accepted := clitest.Listen(t)
			cmd := clitest.Command(dir, "bindery", "build", "catalog", "cat", "-t", silent+"/a/b:v1", "--push", "--use-http")
			cmd.Env = append(cmd.Env, "TMPDIR="+temp)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-accepted
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(stderr.String(),
				"interrupted by") {
				t.Errorf("status %d (%v), %s", status, err, stderr.String())
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}

// While a cache is being filled, SIGHUP ends the command: there is no server to reload.
func TestSignalWhileCacheIsFilled(t *testing.T) {
	dir := t.TempDir()
	catalog := `{"schema":"olm.package","name":"foo","defaultChannel":"stable"}
{"schema":"olm.channel","package":"foo","name":"stable","entries":[{"name":"foo.v1.0.0"}]}
{"schema":"olm.bundle","package":"foo","name":"foo.v1.0.0","image":"example.com/foo:v1","properties":[{"type":"olm.package","value":{"packageName":"foo","version":"1.0.0"}}` +
		strings.Repeat(`,{"type":"example.com/filler","value":{"filler":"`+strings.Repeat("x", 100)+`"}}`,
			200_000) + "]}\n"
	if err := os.MkdirAll(filepath.Join(dir, "cat"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cat", "catalog.json"), []byte(catalog), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := clitest.Command(dir, "bindery", "serve", "cat", "--cache-dir", "cache", "--cache-only")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	begun, err := lines.ReadString('\n')
	if err != nil || !strings.Contains(begun, "building cache") {
		t.Fatalf("%q (%v)", begun, err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	err = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 129 || !strings.Contains(string(rest),
		"interrupted by SIGHUP") {
		t.Errorf("status %d (%v), %s", status, err, rest)
	}
	if _, err := os.Stat(filepath.Join(dir, "cache")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cache is left: %v", err)
	}
}

func TestCompletionScriptsParse(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		for _, name := range []string{"bindery", "opm"} {
			got := clitest.RunProgram(t, ".", name, "completion", shell)
			if got.Status != 0 || !strings.Contains(got.Stdout, "__complete") || !strings.Contains(got.Stdout, name) {
				t.Errorf("%s: %+v", shell, got)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Logf("%s is not installed: its script is not parsed", shell)
				continue
			}
			cmd := exec.Command(path, check...)
			cmd.Stdin = strings.NewReader(got.Stdout)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s does not read its script: %v\n%s", shell, err, out)
			}
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: completion cannot be tried in it")
	}
	for line, want := range map[string]string{
		"bindery list pa":              "packages",
		"bindery render --migrate-l":   "--migrate-level",
		"bindery render -o ":           "json yaml ndjson",
		"bindery verify --type slsap":  "slsaprovenance slsaprovenance1",
		"bindery sign --sign-format ":  "sig bundle both",
		"bindery validate --output= y": "yaml",
		"bindery inspect oci-":         "oci-archive:",
		"bindery inspect no-such-file": "",
	} {
		words := strings.Split(line, " ")
		if i := strings.Index(line, "= "); i >= 0 { // as bash splits a line at its word breaks
			words = []string{"bindery", "validate", "--output", "=", "y"}
		}
		script := `set -u; source <(bindery completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _bindery_complete; echo "${COMPREPLY[*]}"`
		cmd := exec.Command(bash, append([]string{"-c", script, "-"}, words...)...)
		cmd.Env = append(os.Environ(), "PATH="+clitest.BinDir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: got %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestManualPage(t *testing.T) {
	got := clitest.RunProgram(t, ".", "bindery", "man", "--roff")
	for _, want := range []string{".TH BINDERY 1", ".SH NAME\nbindery \\- ", ".SS \"bindery list packages",
		".B \\-o, \\-\\-output", ".SH EXIT STATUS\n.TP\n.B 0\n", ".SH FILES\n"} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(got.Stdout, "__complete") {
		t.Error("the page shows hidden commands")
	}
	plain := clitest.RunProgram(t, ".", "bindery", "man")
	for _, want := range []string{"Read and check:\n", "\nExit status:\n", "\nFiles:\n", "BINDERY_*"} {
		if !strings.Contains(plain.Stdout, want) || strings.Contains(plain.Stdout, ".SH") {
			t.Errorf("the plain page has no %q: %s", want, plain.Stdout)
		}
	}
	man, err := exec.LookPath("man")
	if err != nil {
		t.Log("man is not installed: the page is not formatted")
		return
	}
	cmd := exec.Command(man, "--warnings", "-E", "UTF-8", "-l", "-")
	cmd.Stdin = strings.NewReader(got.Stdout)
	cmd.Env = append(os.Environ(), "MANWIDTH=100", "PAGER=cat", "MANPAGER=cat")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte("EXAMPLES")) && !bytes.Contains(out,
		[]byte("Examples:")) {
		t.Errorf("man: %v %s\n%s", err, stderr.String(), out)
	}
}

// Memory that package initialisation allocates does not trigger a garbage collection before the heap has grown further.
// The packages before firstgc allocate almost enough to trigger one, so that some runs have it.
func TestNoCollectionAtStart(t *testing.T) {
	collects := func(percent string) bool {
		t.Helper()
		cmd := exec.Command(filepath.Join(clitest.BinDir, "bindery"), "version")
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC="+percent)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "gc 1 @")
	}
	if !collects("100") {
		t.Fatal("no collection without firstgc: it is not needed")
	}
	for range 20 {
		if !collects("") {
			return
		}
	}
	t.Error("every run of 20 begins with a collection")
}
