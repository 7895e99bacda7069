package mirror

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// The bytes of a progress are those that are moved: what is found at the target, or mounted, or fails, is taken out of
// the sum, and what is sent twice counts twice.
func TestTally(t *testing.T) {
	var last Event
	p := progress{events: func(e Event) { last = e }}
	count := tally{progress: &p}
	check := func(what string, bytes, all int64) {
		t.Helper()
		if last.Bytes != bytes || last.AllBytes != all {
			t.Errorf("%s: %d of %d bytes, expected %d of %d", what, last.Bytes, last.AllBytes, bytes, all)
		}
	}
	a, b, c, d := digest.FromString("a"), digest.FromString("b"), digest.FromString("c"), digest.FromString("d")
	one, two := count.image(), count.image()
	one.expect(map[digest.Digest]int64{a: 100, b: 200})
	two.expect(map[digest.Digest]int64{b: 200, c: 400})
	check("each blob once", 0, 700)
	step := func(m *moving, kind store.EventKind, of digest.Digest, size, done int64) {
		m.event(store.Event{Kind: kind, Blob: of, Size: size, Done: done})
	}
	one.begin()
	one.expect(map[digest.Digest]int64{d: 1})
	step(one, store.EventBlobStart, a, 100, 0)
	step(one, store.EventBlobProgress, a, 100, 60)
	check("begun", 60, 700)
	step(one, store.EventBlobProgress, a, 100, 30)
	check("an attempt that begins again is no progress backwards", 60, 700)
	step(one, store.EventBlobDone, a, 100, 100)
	step(one, store.EventBlobReused, b, 200, 200)
	one.end()
	check("a moved, b there", 100, 500)
	two.begin()
	step(two, store.EventBlobStart, b, 200, 50)
	check("b for another repository, of which an earlier run sent a part", 100, 650)
	step(two, store.EventBlobDone, b, 200, 200)
	step(two, store.EventBlobStart, c, 400, 0)
	step(two, store.EventBlobProgress, c, 400, 300)
	check("c on its way", 550, 650)
	two.end()
	check("c broke off", 550, 550)
	three := count.image()
	three.expect(map[digest.Digest]int64{d: 1000})
	check("d expected", 550, 1550)
	three.end()
	check("d not needed", 550, 550)
	four := count.image()
	four.begin()
	step(four, store.EventBlobStart, d, 1000, 0)
	step(four, store.EventBlobMounted, d, 1000, 1000)
	four.end()
	check("d mounted", 550, 550)
}
