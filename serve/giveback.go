package serve

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// giveBackEvery is the interval at which a server checks whether it holds unneeded memory.
	giveBackEvery = 10 * time.Second
	// spareMemory is how much more than before a process may hold, in bytes, before a garbage collection is worth its
	// cost.
	spareMemory = 4 << 20
)

// giveBack returns memory to the system after a burst of calls. Without it an idle process keeps the memory of 20,000
// calls: Go collects garbage when memory is allocated, or every two minutes, and returns pages slowly.
type giveBack struct {
	needed uint64 // the least that was held since the last return
}

// watch checks until ctx ends. Its baseline is the memory held when it is called, after loading the catalog.
func (g *giveBack) watch(ctx context.Context) {
	g.look()
	tick := time.NewTicker(giveBackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look()
		}
	}
}

// look returns memory if much more is held than was needed. It reports whether it did.
func (g *giveBack) look() bool {
	held := heldMemory()
	if g.needed == 0 || held <= g.needed+spareMemory {
		if g.needed == 0 || held < g.needed {
			g.needed = held
		}
		return false
	}
	debug.FreeOSMemory()
	g.needed = heldMemory()
	return true
}

// heldMemory is what the Go runtime has obtained from the system and not returned, in bytes.
func heldMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
