package lockfile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The names of a file that is no lock are not kept to find those that stand twice.
func TestMemoryOfWhatIsNoLock(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"version":1`)
	for i := range 300_000 {
		fmt.Fprintf(&b, `,"a%d":1`, i)
	}
	text := []byte(b.String() + "}")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseLock(text)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "a0: unknown field") {
		t.Errorf("%.200v", err)
	}
	if is := after.TotalAlloc - before.TotalAlloc; is > 4<<20 {
		t.Errorf("%d bytes were allocated for %d bytes of names", is, len(text))
	}
}
