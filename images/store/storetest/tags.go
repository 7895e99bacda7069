package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// notes returns the annotations of the manifest of a tag; nil if there is none.
func notes(t testing.TB, text []byte) map[string]string {
	var m v1.Manifest
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return m.Annotations
}

// note writes an annotation more in the manifest of a tag, as signing writes a layer more.
func note(t testing.TB, w store.Writer, tag, key string) error {
	return w.UpdateTag(t.Context(), tag, func(old []byte) ([]byte, string, error) {
		all := maps.Clone(notes(t, old))
		if all == nil {
			all = map[string]string{}
		}
		if all[key] != "" {
			return nil, "", nil
		}
		all[key] = "noted"
		next := newArtifact(t, nil, all)
		return next.content, next.MediaType, nil
	})
}

// A change of a tag is called with what the tag stands for.
func checkUpdates(t *testing.T, p Place) {
	w := p.Writer(t)
	if err := store.WriteBytes(t.Context(), w, empty.Descriptor, empty.content); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no change")
	var want map[string]string
	for _, key := range []string{"", "a", "", "b"} {
		called := false
		err := w.UpdateTag(t.Context(), "v1", func(old []byte) ([]byte, string, error) {
			called = true
			if got := notes(t, old); !maps.Equal(got, want) || (old == nil) != (want == nil) {
				t.Errorf("the old manifest is %s, instead of %v", old, want)
			}
			return nil, "", failure
		})
		if !called || !errors.Is(err, failure) {
			t.Errorf("UpdateTag, and the change fails: %v", err)
		}
		if key == "" {
			err := w.UpdateTag(t.Context(), "v1", func([]byte) ([]byte, string, error) { return nil, "", nil })
			if err != nil {
				t.Error(err)
			}
			if want == nil && tagOf(t, w, "v1") != "" {
				t.Error("a tag that nothing has written")
			}
			continue
		}
		if err := note(t, w, "v1", key); err != nil {
			t.Fatal(err)
		}
		want = maps.Clone(want)
		if want == nil {
			want = map[string]string{}
		}
		want[key] = "noted"
		newArtifact(t, nil, want).check(t, w, "v1")
	}
	commit(t, w)
	newArtifact(t, nil, want).check(t, p.reader(t), "v1")
}

// Goroutines, and two writers if there can be two, change one tag at the same time. After Commit all changes are in it.
func checkUpdatesAtOnce(t *testing.T, p Place) {
	writers := []store.Writer{p.Writer(t)}
	if !p.Replaced {
		p.write(t, newArtifact(t, nil, map[string]string{"first": "noted"}), "v1")
		writers = append(writers, p.Writer(t), p.Writer(t))
	}
	subject := newImage(t, "subject", layer("subject", 10))
	var done sync.WaitGroup
	for i, w := range writers {
		if err := errors.Join(store.WriteBytes(t.Context(), w, empty.Descriptor, empty.content),
			subject.write(t.Context(), w, "subject")); err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			var changes sync.WaitGroup
			for j := range 5 {
				changes.Go(func() {
					if err := note(t, w, "v1", fmt.Sprintf("%d-%d", i, j)); err != nil {
						t.Error(err)
					}
					if !w.Can().Attachments || j > 0 {
						return
					}
					a := newArtifact(t, &subject.Descriptor, map[string]string{"n": fmt.Sprint(i)})
					if err := a.write(t.Context(), w, ""); err != nil {
						t.Error(err)
					}
				})
			}
			changes.Wait()
			if err := w.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	r := p.reader(t)
	text, _, err := r.Manifest(t.Context(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	got := notes(t, text)
	for i := range writers {
		for j := range 5 {
			if key := fmt.Sprintf("%d-%d", i, j); got[key] == "" {
				t.Errorf("the change %s is lost: %v", key, got)
			}
		}
	}
	if !p.Replaced && got["first"] == "" {
		t.Errorf("what was there is lost: %v", got)
	}
	if found := checkList(t, r, subject.Descriptor); r.Can().Attachments && len(found) != len(writers) {
		t.Errorf("%d writers, and listed are %v", len(writers), found)
	}
	for _, w := range writers {
		if err := w.Discard(); err != nil {
			t.Error(err)
		}
	}
}
