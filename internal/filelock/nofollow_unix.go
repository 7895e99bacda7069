//go:build unix

package filelock

import "syscall"

// noFollow opens no symbolic link, and does not wait for the writer of a FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
