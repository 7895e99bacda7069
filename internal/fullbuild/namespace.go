//go:build linux && cgo && buildah

package fullbuild

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"syscall"

	"go.podman.io/storage/pkg/unshare"
	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/userns"
)

// enteredEnv marks the process that [Enter] has started.
const enteredEnv = "_BINDERY_FULLBUILD_ENTERED"

// entered is true in the process that Enter has started.
var entered bool

// Enter sets up the namespaces of a build: private mounts and, for users other than root, their subordinate ids. A
// running process cannot do that: the program is restarted, with the same arguments and standard streams (but stdin,
// unless that is nil), and done is true with its status when that has ended: the caller has nothing left to do then but
// to end with the status. It must be called before anything is read from standard input or written. Signals are passed
// on, and the other process is killed when this one is.
//
// In the process that was started done is false, however often it is called.
func Enter(stdin io.Reader) (status int, done bool, err error) {
	if entered {
		return 0, false, nil
	}
	if os.Getenv(enteredEnv) != "" {
		entered = true
		os.Unsetenv(enteredEnv) // for the commands of the build
		return 0, false, private()
	}
	cmd := unshare.Command(os.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Env = append(os.Environ(), enteredEnv+"=1")
	cmd.UnshareFlags = syscall.CLONE_NEWNS
	admin, err := unshare.HasCapSysAdmin()
	if err != nil {
		return 0, false, fmt.Errorf("reading the capabilities of this process: %w", err)
	}
	if !admin || os.Geteuid() != 0 {
		if cmd.UidMappings, cmd.GidMappings, err = subordinate(); err != nil {
			return 0, false, err
		}
		cmd.UnshareFlags |= syscall.CLONE_NEWUSER
		cmd.UseNewuidmap, cmd.UseNewgidmap, cmd.GidMappingsEnableSetgroups = true, true, true
	}
	return start(cmd)
}

// private keeps the mounts of this process from its parent's.
func private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making the mounts of the build private: %w", err)
	}
	return nil
}

// start runs the command until it ends.
func start(cmd *unshare.Cmd) (int, bool, error) {
	// The kernel sends the signal of a parent's death when the thread ends that has started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	to, stop := userns.Relay()
	if err := cmd.Start(); err != nil {
		stop()
		return 0, false, fmt.Errorf("starting the build in a user namespace: %w%s", err, hint())
	}
	to(cmd.Process)
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, true, nil
	case !errors.As(err, &exit):
		return 0, false, err
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), true, nil
	}
	return exit.ExitCode(), true, nil
}

// hint is what may keep this machine from giving a namespace.
func hint() string {
	if reason := userns.Restricted(); reason != "" {
		return " (" + reason + ")"
	}
	return ""
}

// subordinate are the id maps of a user namespace with the user as root and the user's subordinate ids.
func subordinate() (uids, gids []specs.LinuxIDMapping, err error) {
	me, err := user.Current()
	if err != nil {
		return nil, nil, fmt.Errorf("RUN needs root, or subordinate ids of the user in /etc/subuid and /etc/subgid: %w", err)
	}
	uids, gids, err = unshare.GetSubIDMappings(me.Username, me.Username)
	if err != nil || len(uids) == 0 || len(gids) == 0 {
		why := ""
		if err != nil {
			why = ": " + err.Error()
		}
		return nil, nil, fmt.Errorf("RUN needs root, or subordinate ids of the user %s in /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %[1]s)%[2]s", me.Username, why)
	}
	for _, program := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, nil, fmt.Errorf("RUN by a user who is not root needs the program %s (package uidmap or shadow-utils): %w", program, err)
		}
	}
	return withSelf(os.Getuid(), uids), withSelf(os.Getgid(), gids), nil
}

// withSelf maps id to root, and the others after it.
func withSelf(id int, others []specs.LinuxIDMapping) []specs.LinuxIDMapping {
	out := []specs.LinuxIDMapping{{HostID: uint32(id), Size: 1}}
	next := uint32(1)
	for _, m := range others {
		out = append(out, specs.LinuxIDMapping{ContainerID: next, HostID: m.HostID, Size: m.Size})
		next += m.Size
	}
	return out
}
