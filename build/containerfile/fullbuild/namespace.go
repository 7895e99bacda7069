//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

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

	"github.com/opencontainers/runtime-spec/specs-go"
	"go.podman.io/storage/pkg/unshare"
	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/userns"
)

// enteredEnv marks the process that [Enter] started.
const enteredEnv = "_BINDERY_FULLBUILD_ENTERED"

// entered is true in the process that Enter started.
var entered bool

// Enter sets up the namespaces of a build: private mounts and, for users other than root, their subordinate ids. A
// running process cannot do that to itself, so the program is started again, with the same arguments and standard
// streams (stdin replaces standard input unless it is nil). When that process has ended, Enter returns done == true and
// its exit status, with which the caller must exit. Enter must be called before anything is read from standard input or
// written. Signals are forwarded, and the second process is killed when this one dies.
//
// In the second process Enter returns done == false.
func Enter(stdin io.Reader) (status int, done bool, err error) {
	if entered {
		return 0, false, nil
	}
	if os.Getenv(enteredEnv) != "" {
		entered = true
		os.Unsetenv(enteredEnv) // the commands of the build must not see it
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

// private detaches the mounts of this process from its parent's.
func private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making the mounts of the build private: %w", err)
	}
	return nil
}

// start runs the command until it ends.
func start(cmd *unshare.Cmd) (int, bool, error) {
	// The kernel sends the parent-death signal when the thread that started the child ends.
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

// hint explains what may prevent this machine from creating a namespace.
func hint() string {
	if reason := userns.Restricted(); reason != "" {
		return " (" + reason + ")"
	}
	return ""
}

// subordinate returns the id maps of a user namespace in which the user is root and the user's subordinate ids follow.
func subordinate() (uids, gids []specs.LinuxIDMapping, err error) {
	me, err := user.Current()
	if err != nil {
		return nil, nil, fmt.Errorf("RUN needs root, or subordinate ids of the user in /etc/subuid and /etc/subgid: %w",
			err)
	}
	uids, gids, err = unshare.GetSubIDMappings(me.Username, me.Username)
	if err != nil || len(uids) == 0 || len(gids) == 0 {
		why := ""
		if err != nil {
			why = ": " + err.Error()
		}
		return nil, nil,
			fmt.Errorf(
				"RUN needs root, or subordinate ids of the user %s in /etc/subuid and /etc/subgid (usermod "+
					"--add-subuids 100000-165535 --add-subgids 100000-165535 %[1]s)%[2]s", me.Username, why)
	}
	for _, program := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, nil, fmt.Errorf(
				"RUN by a user who is not root needs the program %s (package uidmap or shadow-utils): %w", program, err)
		}
	}
	return withSelf(os.Getuid(), uids), withSelf(os.Getgid(), gids), nil
}

// withSelf maps id to root and the others after it.
func withSelf(id int, others []specs.LinuxIDMapping) []specs.LinuxIDMapping {
	out := []specs.LinuxIDMapping{{HostID: uint32(id), Size: 1}}
	next := uint32(1)
	for _, m := range others {
		out = append(out, specs.LinuxIDMapping{ContainerID: next, HostID: m.HostID, Size: m.Size})
		next += m.Size
	}
	return out
}
