package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent takes a tenth less memory than Go's default for a tenth more processor time.
	gcPercent = 50
	// gcFloor is the size of the heap below which nothing is collected. By the percentage alone the collector runs for every
	// two megabytes that a short command allocates, which takes a quarter of its processor time.
	gcFloor = 16 << 20
)

// paceCollector sets how far the heap grows, and sets it again after each collection, by what that has left.
func paceCollector() {
	found := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(found)
	debug.SetGCPercent(percentAfter(found[0].Value.Uint64(), found[1].Value.Uint64()))
	runtime.AddCleanup(new([16]byte), func(int) { paceCollector() }, 0)
}

// percentAfter is the growth, in percent of the heap in use and the global variables, that is allowed to the heap.
func percentAfter(live, globals uint64) int {
	if live == 0 {
		// Nothing has been collected yet. Go takes the percentage of 4 MiB then.
		return gcFloor * 100 / (4 << 20)
	}
	if live >= gcFloor {
		return gcPercent
	}
	return max(gcPercent, int((gcFloor-live)*100/(live+globals)))
}
