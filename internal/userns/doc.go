// Package userns starts the running program a second time in a user namespace, in which it is root and may mount:
// podman's image store needs that (user_namespaces(7)). It needs no other program and no set-up of the machine, as the
// namespace has a single id, the user's.
//
// The first process only waits and forwards signals and the exit status. The second one must be started before the
// program has done anything, because it does not inherit the program's state.
package userns

import (
	"os"
	"strconv"
	"sync/atomic"
)

// The variables by which podman's libraries detect a user namespace and the user's id outside it.
const (
	configuredEnv = "_CONTAINERS_USERNS_CONFIGURED"
	uidEnv        = "_CONTAINERS_ROOTLESS_UID"
	gidEnv        = "_CONTAINERS_ROOTLESS_GID"
)

// startedEnv marks the second process, which never starts a third one.
const startedEnv = "_BINDERY_USERNS"

// UID returns the user's id outside the namespace, after which directories are named. It is -1 on systems without
// numeric ids.
func UID() int {
	if uid, err := strconv.Atoi(os.Getenv(uidEnv)); err == nil && uid >= 0 {
		return uid
	}
	return os.Getuid()
}

// Started reports whether this is the second process.
func Started() bool { return os.Getenv(startedEnv) != "" }

var failure atomic.Pointer[error]

// Err returns why [Enter] could not start the program in a namespace; nil if it was not called.
func Err() error {
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}
