package registry

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
)

// A registry that always warns in other words does not make the client grow.
func TestWarningsAreBounded(t *testing.T) {
	told := 0
	r, err := New(t.Context(), Options{Temp: t.TempDir(), Events: func(store.Event) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 10 * maxWarnings {
		r.warn(fmt.Sprint(i), store.Event{Kind: store.EventWarning})
	}
	if told != maxWarnings || len(r.warned) != maxWarnings {
		t.Errorf("%d told, %d remembered", told, len(r.warned))
	}
}
