package serve

import (
	"runtime/debug"
	"testing"
)

// The memory of a burst is returned to the system, once.
func TestMemoryIsGivenBack(t *testing.T) {
	debug.FreeOSMemory()
	var g giveBack
	if g.returnMemory() {
		t.Error("memory is returned before anything was needed")
	}
	before := heldMemory()
	var burst [][]byte
	for range 64 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		burst = append(burst, b)
	}
	if grown := heldMemory() - before; grown < uint64(len(burst))<<20/2 {
		t.Fatalf("the burst took %d bytes only", grown)
	}
	burst = nil
	_ = burst
	if !g.returnMemory() {
		t.Error("nothing is returned")
	}
	if after := heldMemory(); after > before+spareMemory {
		t.Errorf("%d MB are held, %d MB before", after>>20, before>>20)
	}
	if g.returnMemory() {
		t.Error("memory is returned again")
	}
}
