package userns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// helperEnv makes the test program enter a namespace and run the named helper.
const helperEnv = "USERNS_TEST_HELPER"

func TestMain(m *testing.M) {
	what := os.Getenv(helperEnv)
	if what == "" {
		os.Exit(m.Run())
	}
	status, started := Enter(nil)
	if started {
		os.Exit(status)
	}
	if err := Err(); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	os.Exit(help(what))
}

// help runs in the second process.
func help(what string) int {
	switch what {
	case "tell":
		text, err := io.ReadAll(os.Stdin)
		fmt.Printf("%d %d %v %v %v %s %v\n", os.Getuid(), UID(), Needed(), SingleID(), Started(), text, err)
		err = syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, "")
		fmt.Fprintf(os.Stderr, "%v", err)
		extra, _ := io.ReadAll(os.NewFile(7, "extra"))
		fmt.Printf("%s", extra)
		return 42
	case "signal":
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		fmt.Println("ready", os.Getpid())
		fmt.Println(<-ch)
		return 43
	}
	return 1
}

// ordinary returns a command that runs the test program as a user other than root.
func ordinary(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// The test's own temporary directory may not be accessible to other users.
	dir, err := os.MkdirTemp("", "userns-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "helper")
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperEnv+"="+what)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	}
	return cmd
}

func TestSecondProcessIsRootWithTheSameStreamsAndStatus(t *testing.T) {
	cmd := ordinary(t, "tell")
	cmd.Stdin = strings.NewReader("in")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{nil, nil, nil, nil, r}
	if _, err := w.WriteString("extra"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	uid := os.Getuid()
	if uid == 0 {
		uid = 65533
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Fatalf("ended with %v: %s%s", err, stdout.String(), stderr.String())
	}
	if want := fmt.Sprintf("0 %d false true true in <nil>\nextra", uid); stdout.String() != want ||
		stderr.String() != "<nil>" {
		t.Errorf("got %q and %q, want %q and a mount", stdout.String(), stderr.String(), want)
	}
}

func TestSignalsReachTheSecondProcess(t *testing.T) {
	cmd, out := startHelper(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil || string(text) != "terminated\n" {
		t.Errorf("got %q, %v", text, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 43 {
		t.Errorf("ended with %v", err)
	}
}

func TestSecondProcessDiesWithTheFirst(t *testing.T) {
	cmd, out := startHelper(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The pipe ends when no process has it open any more.
	if text, err := io.ReadAll(out); err != nil || len(text) != 0 {
		t.Errorf("got %q, %v", text, err)
	}
	cmd.Wait()
}

func TestStatusOfAKilledSecondProcess(t *testing.T) {
	cmd, out := startHelper(t)
	if err := syscall.Kill(out.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+9 {
		t.Errorf("ended with %v", err)
	}
}

type helperOutput struct {
	io.Reader
	pid int
}

// startHelper starts the helper that waits for a signal.
func startHelper(t *testing.T) (*exec.Cmd, helperOutput) {
	t.Helper()
	cmd := ordinary(t, "signal")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); r.Close() })
	w.Close()
	line := make([]byte, 64)
	n, err := r.Read(line)
	first, ok := strings.CutPrefix(string(line[:n]), "ready ")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || !ok {
		t.Fatalf("not ready: %q, %v", line[:n], err)
	}
	return cmd, helperOutput{r, pid}
}

func TestCauseNamesWhatIsInTheWay(t *testing.T) {
	none := map[string]string{}
	for _, c := range []struct {
		err   error
		files map[string]string
		want  string
	}{
		{syscall.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"},
			"sysctl user.max_user_namespaces is 0"},
		{syscall.EPERM, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"},
			"kernel.unprivileged_userns_clone is 0"},
		{syscall.EACCES, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
			"AppArmor"},
		{&os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: syscall.EPERM}, none, "seccomp"},
		{syscall.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "7\n"}, "as many as"},
		{syscall.EINVAL, none, "built without"},
		{syscall.EIO, none, "refuses"},
	} {
		err := causeOf(c.err, func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		})
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "/proc/self/exe") {
			t.Errorf("%v with %v: got %v, want %q", c.err, c.files, err, c.want)
		}
	}
}

func TestCapabilityIsReadFromTheStatus(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{
		"Name:\tx\nCapEff:\t000001ffffffffff\n": true,
		"CapEff:\t0000000000200000\n":           true,
		"CapEff:\t00000000a80425fb\n":           false, // root in a container
		"CapEff:\t0000000000000000\n":           false,
		"Name:\tx\n":                            true,
	} {
		path := filepath.Join(dir, "status")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mayAdminister(path); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
