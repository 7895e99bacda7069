package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
)

// What is staged is seen after Commit, and Discard leaves nothing of it.
func checkDiscard(t *testing.T, p Place) {
	w := p.Writer(t)
	if err := errors.Join(w.Discard(), w.Discard()); err != nil {
		t.Errorf("nothing is discarded: %v", err)
	}
	if p.Reader == nil {
		return
	}
	old, next := newImage(t, "old", layer("old", large)), newImage(t, "next", layer("next", large), layer("small", 10))
	p.write(t, old, "v1")
	before := p.files(t)
	untouched := func(what string) {
		t.Helper()
		r := p.reader(t)
		old.check(t, r, "v1")
		if got := tagOf(t, r, "v2"); got != "" {
			t.Errorf("%s: v2 is %s", what, got)
		}
	}
	for _, fails := range []bool{false, true} {
		w := p.Writer(t)
		if err := errors.Join(next.write(t.Context(), w, "v1"), next.write(t.Context(), w, "v2"),
			note(t, w, "v3", "a")); err != nil {
			t.Fatal(err)
		}
		untouched("staged")
		if fails {
			if err := w.Commit(cancelled(t)); err == nil {
				t.Error("committed with a context that has ended")
			}
			untouched("not committed")
		}
		if err := w.Discard(); err != nil {
			t.Error(err)
		}
		untouched("discarded")
		if now := p.files(t); !slices.Equal(now, before) {
			t.Errorf("the files are %v, and were %v", now, before)
		}
	}
	w = p.Writer(t)
	if err := store.WriteBytes(t.Context(), w, empty.Descriptor, empty.content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(note(t, w, "v1", "a"), next.write(t.Context(), w, "v2")); err != nil {
		t.Fatal(err)
	}
	commit(t, w)
	next.check(t, p.reader(t), "v2")
}
