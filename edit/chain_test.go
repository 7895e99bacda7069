package edit

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// Heads that share a chain do not walk it again.
func TestChainOfManyHeads(t *testing.T) {
	const n = 40_000
	c := newChannel("p", "a")
	for i := range n {
		for _, e := range []declcfg.ChannelEntry{{Name: fmt.Sprint("head", i), Replaces: "0"},
			{Name: fmt.Sprint(i), Replaces: fmt.Sprint(i + 1)}} {
			c.entries[e.Name] = e
		}
	}
	start := time.Now()
	if got := len(c.chain()); got != 2*n {
		t.Errorf("%d entries", got)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
