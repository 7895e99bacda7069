package serve

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// giveBackEvery is how often a server looks whether it holds memory that it does not need.
	giveBackEvery = 10 * time.Second
	// spareMemory is what a process may hold beyond what it held last, in bytes, before it is worth a garbage collection.
	spareMemory = 4 << 20
)

// giveBack returns memory to the system after a burst of calls. Without it, what 20,000 calls took stays with a process that
// has nothing more to do: Go collects garbage when memory is allocated, or every two minutes, and returns pages slowly.
type giveBack struct {
	needed uint64 // the least that was held since the last return
}

// watch looks until ctx ends. It begins with what is held when it is called: a catalog that was loaded.
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

// heldMemory is what the Go runtime has from the system and has not returned, in bytes.
func heldMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
