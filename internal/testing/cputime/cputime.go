// Package cputime measures processor time, for tests of how the cost of a function grows. Unlike wall-clock time it
// does not depend on the load of the machine.
package cputime

import (
	"runtime"
	"time"
)

// least is the shortest processor time that is measured reliably: shorter functions are repeated.
const least = 10 * time.Millisecond

// Of returns the processor time of f: the least of three runs, in each of which f is repeated until it can be measured.
// It measures the calling goroutine's thread or, on systems without per-thread times, the process.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(0)
	for n, run := 1, 0; run < 3; {
		runtime.GC() // otherwise f would pay for sweeping earlier garbage
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

// Ratio returns the processor time of large divided by that of small.
func Ratio(small, large func()) float64 { return float64(Of(large)) / float64(Of(small)) }
