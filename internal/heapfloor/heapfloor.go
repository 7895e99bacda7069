// Package heapfloor keeps the garbage collector from running while the heap is small, from when the package is imported:
// what the packages of a large program make when they are initialized lives as long as the program, and looking through it
// again and again is a quarter of the time of a short command.
package heapfloor

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// The heap that is not collected, and the percentage that makes it so large before the first collection: with Go's own, 100, that
// begins at 4 MiB.
const (
	floor   = 16 << 20
	percent = 400
)

// What counts from the next collection on.
var (
	by   atomic.Int32
	once atomic.Bool
)

func init() {
	by.Store(100) // the default of Go
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		arm()
	}
}

// Keep sets the percentage by which the heap may grow until it is collected again, and lets it grow to 16 MiB in any case.
// The variable GOGC of the environment counts instead, if it is there.
func Keep(percent int) { by.Store(int32(percent)) }

// Once is [Keep] for a process that runs for long: after the first collection the percentage alone counts.
func Once(percent int) {
	by.Store(int32(percent))
	once.Store(true)
}

// arm has collected called after the next collection: what it makes goes with that, and shares its memory with nothing.
func arm() { runtime.SetFinalizer(new([64]byte), collected) }

func collected(*[64]byte) {
	least := int(by.Load())
	if once.Load() {
		debug.SetGCPercent(least)
		return
	}
	debug.SetGCPercent(next(least, live()))
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
