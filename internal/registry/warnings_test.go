package registry

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/internal/transfer"
)

// A registry that always warns in other words does not make the client grow.
func TestWarningsAreBounded(t *testing.T) {
	told := 0
	r := NewClient(Options{}, nil, func(transfer.Event) { told++ })
	for i := range 10 * maxWarnings {
		r.warn(fmt.Sprint(i), transfer.Event{Kind: transfer.EventWarning})
	}
	if told != maxWarnings || len(r.warned) != maxWarnings {
		t.Errorf("%d told, %d remembered", told, len(r.warned))
	}
}
