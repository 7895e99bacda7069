//go:build unix

package option

import (
	"golang.org/x/sys/unix"
)

// ForbidCoreDumps keeps keys and passphrases out of core dumps. The limit is 1 and not 0: with 1, Linux also writes
// none to a program that collects them (core(5), "Piping core dumps to a program").
func ForbidCoreDumps() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil && limit.Cur > 1 {
		limit.Cur = 1
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // the keys are erased after use in any case
	}
}
