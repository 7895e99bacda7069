// Package cputime measures processor time, for tests of how the work of a function grows. Unlike the time of a clock
// it does not depend on what else the machine does.
package cputime

import (
	"runtime"
	"time"
)

// least is the processor time below which a measurement says little: work is repeated until it takes as much.
const least = 10 * time.Millisecond

// Of returns the processor time of f: the least of three runs, in each of which f is repeated until it can be
// measured. It counts what f does on the calling goroutine's thread, and where the system does not tell threads
// apart, what the process does.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(0)
	for n, run := 1, 0; run < 3; {
		runtime.GC() // what others have left is not swept by f
		start := used()
		for range n {
			f()
		}
		took := used() - start
		if took < least && n < 1<<20 {
			n *= 2
			continue
		}
		if each := max(took/time.Duration(n), 1); best == 0 || each < best {
			best = each
		}
		run++
	}
	return best
}

// Once returns the processor time of one run of f, counted as in [Of].
func Once(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := used()
	f()
	return used() - start
}

// Ratio returns how many times the processor time of small that of large is.
func Ratio(small, large func()) float64 { return float64(Of(large)) / float64(Of(small)) }
