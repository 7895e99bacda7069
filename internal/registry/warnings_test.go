package registry

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
)

// A registry that always warns in other words does not make the client grow.
func TestWarningsAreBounded(t *testing.T) {
	told := 0
	r := NewClient(Options{}, nil, func(store.Event) { told++ })
	for i := range 10 * maxWarnings {
		r.warn(fmt.Sprint(i), store.Event{Kind: store.EventWarning})
	}
	if told != maxWarnings || len(r.warned) != maxWarnings {
		t.Errorf("%d told, %d remembered", told, len(r.warned))
	}
}
