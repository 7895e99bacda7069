//go:build unix

package atomicfs

import "syscall"

// The tests compare modes, which depend on the umask.
func init() { syscall.Umask(0o022) }
