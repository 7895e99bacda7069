//go:build unix

package serve

import (
	"math"
	"syscall"
)

// fileLimit returns how many files the process may have open at once.
func fileLimit() (int, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)), true
}
