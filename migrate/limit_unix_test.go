//go:build unix

package migrate_test

import (
	"os/signal"
	"syscall"
)

// limitFileSize makes writes beyond a file size fail in this process.
func limitFileSize(n uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
