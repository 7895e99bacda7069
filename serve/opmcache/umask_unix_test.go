//go:build unix

package opmcache

import "syscall"

// The tests compare modes of files, which are those under the usual umask.
func init() { syscall.Umask(0o022) }
