// Package heapfloor keeps the garbage collector from running while the heap is small, from when the package is imported:
// what the packages of a large program make when they are initialized lives as long as the program, and looking through it
// again and again is a quarter of the time of a short command.
package heapfloor

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The heap that is not collected. Below four times the percentage in KiB there is no collection, see
// runtime/debug.SetGCPercent.
const (
	floor   = 16 << 20
	percent = 400
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Keep sets the percentage by which the heap may grow until it is collected again, and lets it grow to 16 MiB in any case.
// The variable GOGC of the environment counts instead, if it is there.
func Keep(by int) { keep(by, false) }

// Once is [Keep] for a process that runs for long: after the first collection the percentage alone counts.
func Once(by int) { keep(by, true) }

func keep(by int, once bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	var collected func(*[64]byte)
	arm := func() {
		runtime.SetFinalizer(new([64]byte), collected) // it goes with the next collection, and shares its memory with nothing
	}
	collected = func(*[64]byte) {
		if once {
			debug.SetGCPercent(by)
			return
		}
		debug.SetGCPercent(next(by, live()))
		arm()
	}
	arm()
}

// next is the percentage by which so much heap may grow.
func next(least int, live uint64) int {
	if live >= floor {
		return least
	}
	return min(percent, max(least, int(100*(floor-live)/max(1, live))))
}

// live is what the last collection has found in use, as it counts for the percentage.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
}
