package userns

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Needed reports whether this process lacks what a namespace would give: it is not root, or it is root without the
// right to mount, as in most containers. In "podman unshare" it lacks nothing.
func Needed() bool {
	return os.Geteuid() != 0 || !mayAdminister("/proc/self/status")
}

// mayAdminister reports whether the effective capabilities contain CAP_SYS_ADMIN. If they cannot be read it returns
// true: an operation without the capability will fail with its own error.
func mayAdminister(status string) bool {
	f, err := os.Open(status)
	if err != nil {
		return true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if mask, ok := strings.CutPrefix(lines.Text(), "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err != nil || bits&(1<<unix.CAP_SYS_ADMIN) != 0
		}
	}
	return true
}

// SingleID reports whether the process is in a user namespace with one id, in which files cannot have other owners.
func SingleID() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(text))
	return err == nil && len(fields) == 3 && fields[2] == "1"
}

// Enter starts the program again in a namespace and waits until it ends. started is false if there is no second process
// and this one must go on: it is the second one, nothing is lacking, or no namespace could be created, for which [Err]
// returns the reason.
//
// Call it in the main goroutine: the second process is killed when the thread that started it ends.
//
// stdin, unless nil, becomes the standard input of the second process, for callers that have already read theirs.
func Enter(stdin []byte) (status int, started bool) {
	if Started() || !Needed() {
		return 0, false
	}
	runtime.LockOSThread()
	// From here on no signal ends the first process: its end would kill the second one without a chance to clean up.
	to, stop := Relay()
	p, err := start(stdin)
	if err != nil {
		stop()
		runtime.UnlockOSThread()
		err = causeOf(err, os.ReadFile)
		failure.Store(&err)
		return 0, false
	}
	to(p)
	state, err := p.Wait()
	if err != nil {
		return 1, true
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), true
	}
	return state.ExitCode(), true
}

// Relay holds back the signals of this process until its first result is called with another process, and forwards them
// to that one, except those that the terminal sends to both. stop restores the default handling.
func Relay() (to func(*os.Process), stop func()) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	to = func(p *os.Process) {
		go func() {
			for s := range signals {
				if !alsoTyped(s) {
					p.Signal(s) // an error means that it has exited
				}
			}
		}()
	}
	return to, func() { signal.Stop(signals) }
}

// start starts the program with the same arguments, streams and environment.
func start(stdin []byte) (*os.Process, error) {
	env := append(os.Environ(), startedEnv+"=1", configuredEnv+"=done")
	if os.Getenv(uidEnv) == "" { // the ids outside the outermost namespace count
		env = append(env, fmt.Sprintf("%s=%d", uidEnv, os.Geteuid()), fmt.Sprintf("%s=%d", gidEnv, os.Getegid()))
	}
	files := inherited("/proc/self/fd")
	defer func() {
		for _, f := range files[3:] {
			if f != nil {
				f.Close()
			}
		}
	}()
	if stdin != nil {
		in, err := newMemoryFile(stdin)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		files[0] = in
	}
	return os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   env,
		Files: files,
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			Pdeathsig:   unix.SIGKILL,
		},
	})
}

// newMemoryFile returns an unnamed file with the content.
func newMemoryFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// maxInherited is the highest file descriptor that is inherited. Shells use some up to 63 for "<(command)".
const maxInherited = 255

// inherited returns the streams and all other file descriptors that the program was started with, at their numbers.
func inherited(dir string) []*os.File {
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	names, _ := os.ReadDir(dir)
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || fd < 3 || fd > maxInherited {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // opened by this process
		}
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, maxInherited+1)
		if err != nil {
			continue
		}
		for len(files) <= fd {
			files = append(files, nil)
		}
		files[fd] = os.NewFile(uintptr(copied), n.Name())
	}
	return files
}

// alsoTyped reports whether a signal that terminal keys can send came from the terminal: then both processes received
// it, and forwarding it would make it look typed twice.
func alsoTyped(s os.Signal) bool {
	if s != unix.SIGINT && s != unix.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
