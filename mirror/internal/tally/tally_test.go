package tally

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// The bytes of a progress are those that are moved: what is found at the target, or mounted, or fails, is taken out of
// the sum, and what is sent twice counts twice.
func TestTally(t *testing.T) {
	var moved, sum int64
	count := New(func(bytes, all int64) { moved, sum = moved+bytes, sum+all })
	check := func(what string, bytes, all int64) {
		t.Helper()
		if moved != bytes || sum != all {
			t.Errorf("%s: %d of %d bytes, expected %d of %d", what, moved, sum, bytes, all)
		}
	}
	a, b, c, d := digest.FromString("a"), digest.FromString("b"), digest.FromString("c"), digest.FromString("d")
	one, two := count.Image(), count.Image()
	one.Expect(map[digest.Digest]int64{a: 100, b: 200})
	two.Expect(map[digest.Digest]int64{b: 200, c: 400})
	check("each blob once", 0, 700)
	step := func(m *Image, kind store.EventKind, of digest.Digest, size, done int64) {
		m.Event(store.Event{Kind: kind, Blob: of, Size: size, Done: done})
	}
	one.Begin()
	one.Expect(map[digest.Digest]int64{d: 1})
	step(one, store.EventBlobStart, a, 100, 0)
	step(one, store.EventBlobProgress, a, 100, 60)
	check("begun", 60, 700)
	step(one, store.EventBlobProgress, a, 100, 30)
	check("an attempt that begins again is no progress backwards", 60, 700)
	step(one, store.EventBlobDone, a, 100, 100)
	step(one, store.EventBlobReused, b, 200, 200)
	one.End()
	check("a moved, b there", 100, 500)
	two.Begin()
	step(two, store.EventBlobStart, b, 200, 50)
	check("b for another repository, of which an earlier run sent a part", 100, 650)
	step(two, store.EventBlobDone, b, 200, 200)
	step(two, store.EventBlobStart, c, 400, 0)
	step(two, store.EventBlobProgress, c, 400, 300)
	check("c on its way", 550, 650)
	two.End()
	check("c broke off", 550, 550)
	three := count.Image()
	three.Expect(map[digest.Digest]int64{d: 1000})
	check("d expected", 550, 1550)
	three.End()
	check("d not needed", 550, 550)
	four := count.Image()
	four.Begin()
	step(four, store.EventBlobStart, d, 1000, 0)
	step(four, store.EventBlobMounted, d, 1000, 1000)
	four.End()
	check("d mounted", 550, 550)
}
