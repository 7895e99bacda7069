package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// used returns the processor time of the thread.
func used() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &r); err != nil {
		panic(err) // only for an invalid argument
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
