package userns

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Error explains why no user namespace could be created.
type Error struct {
	// Reason is a sentence about this machine.
	Reason string
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("no user namespace is available: %s (%v)", e.Reason, e.Err)
}
func (e *Error) Unwrap() error { return e.Err }

// restriction is a kernel setting that forbids user namespaces.
type restriction struct {
	file, value, reason string
}

var restrictions = []restriction{
	{"/proc/sys/user/max_user_namespaces", "0", "the sysctl user.max_user_namespaces is 0"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "the sysctl kernel.unprivileged_userns_clone is 0"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"AppArmor denies them to programs without a profile (sysctl kernel.apparmor_restrict_unprivileged_userns)"},
}

// causeOf determines what keeps the kernel from creating a namespace.
func causeOf(err error, read func(string) ([]byte, error)) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err // the path of the program explains nothing
	}
	if reason := restricted(read); reason != "" {
		return &Error{reason, err}
	}
	e := &Error{"the kernel refuses", err}
	switch {
	case errors.Is(err, syscall.EPERM):
		e.Reason = "a seccomp filter, as that of most containers, or a security module forbids it, or the process is " +
			"in a chroot"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		e.Reason = "there are as many as the sysctl user.max_user_namespaces allows, or they are nested too deep"
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSYS):
		e.Reason = "the kernel was built without them"
	}
	return e
}

// Restricted explains why a created namespace may be useless; empty if no reason is known.
func Restricted() string { return restricted(os.ReadFile) }

func restricted(read func(string) ([]byte, error)) string {
	for _, r := range restrictions {
		if text, err := read(r.file); err == nil && strings.TrimSpace(string(text)) == r.value {
			return r.reason
		}
	}
	return ""
}
