// Package userns starts the running program a second time in a user namespace of its own, in which it is root and may mount:
// what a store of images needs (user_namespaces(7)). No other program takes part and no set-up of the machine: the namespace
// has one identity, that of the user.
//
// The first process does nothing more than to wait: it hands on signals and the exit status. It must be started before the
// program has done anything, because what it had open is not known to the second one.
package userns

import (
	"os"
	"strconv"
	"sync/atomic"
)

// The variables by which podman and its libraries know that a process is in a user namespace, and whose it is outside.
const (
	configuredEnv = "_CONTAINERS_USERNS_CONFIGURED"
	uidEnv        = "_CONTAINERS_ROOTLESS_UID"
	gidEnv        = "_CONTAINERS_ROOTLESS_GID"
)

// startedEnv marks the second process, which starts no third one whatever it finds.
const startedEnv = "_BINDERY_USERNS"

// UID is the user's identity as it is outside of the namespace, where directories are named after it. It is -1 where users
// have no numbers.
func UID() int {
	if uid, err := strconv.Atoi(os.Getenv(uidEnv)); err == nil && uid >= 0 {
		return uid
	}
	return os.Getuid()
}

// Started reports whether this is the second process.
func Started() bool { return os.Getenv(startedEnv) != "" }

var failure atomic.Pointer[error]

// Err is why [Enter] could not start the program in a namespace; nil where it was not called.
func Err() error {
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}
