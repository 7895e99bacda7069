package mirror

import (
	"testing"
)

// Images that are not begun are expected to be as large as those that are: of 100 images four are copied at once.
func TestProgressExpectsTheRest(t *testing.T) {
	var last Event
	p := progress{events: func(e Event) { last = e }}
	p.begin(100, 4)
	p.add(func(e *Event) { e.AllBytes += 4000 })
	if last.Expected != 96000 {
		t.Errorf("four of 100 begun: %d", last.Expected)
	}
	for range 96 {
		p.add(func(e *Event) { e.Images++; e.AllBytes += 1000 })
	}
	if last.Expected != 0 {
		t.Errorf("all begun: %d", last.Expected)
	}
	p.begin(10, 4)
	p.add(func(e *Event) { e.AllBytes += 40 })
	if last.Expected != 60 {
		t.Errorf("the next group, of smaller images: %d", last.Expected)
	}
}
