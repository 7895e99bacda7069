//go:build unix

package blobcache

import "syscall"

// noWait opens a FIFO without waiting for its other end.
const noWait = syscall.O_NONBLOCK
