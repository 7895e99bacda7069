package storetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// An index of images is written, and what is there is not written again.
func checkImage(t *testing.T, p Place) {
	w := p.Writer(t)
	checkReader(t, w)
	shared, big := layer("shared", 1000), layer("big", large)
	x := newIndex(t, newImage(t, "a", shared, layer("a", 20_000)), newImage(t, "b", shared, big))
	for range 2 {
		if err := x.write(t.Context(), w, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	x.check(t, w, "v1")
	checkReader(t, w, "v1", x.Digest.String())
	if _, err := w.WriteBlob(t.Context(), big.Descriptor, unread(t)); err != nil {
		t.Errorf("a blob that the writer has written: %v", err)
	}
	commit(t, w)
	r := p.reader(t)
	x.check(t, r, "v1")
	checkReader(t, r, "v1", x.Digest.String())
	if p.Replaced {
		return
	}
	w = p.Writer(t)
	x.check(t, w, "v1")
	if _, err := w.WriteBlob(t.Context(), big.Descriptor, unread(t)); err != nil {
		t.Errorf("a blob that is there: %v", err)
	}
	if err := x.write(t.Context(), w, "v2"); err != nil {
		t.Error(err)
	}
	commit(t, w)
	checkReader(t, p.reader(t), "v1", "v2")
}

// checkHostileWrites checks that a place refuses tags that break the rules for tags, or keeps them as names like all
// others if it has no rules.
func checkHostileWrites(t *testing.T, p Place) {
	w := p.Writer(t)
	one, other := newImage(t, "one", layer("one", 10)), newImage(t, "other", layer("other", 10))
	if err := errors.Join(one.write(t.Context(), w, "v1"), other.write(t.Context(), w, "v2")); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Clone(hostileNames), one.Digest.String()) {
		if name == "" {
			continue // the manifest is written under its digest
		}
		err := w.WriteManifest(t.Context(), other.content, other.MediaType, store.WriteOptions{Tag: name})
		if err == nil && tagOf(t, w, name) != other.Digest && name != one.Digest.String() {
			t.Errorf("the tag %q is written, and is %s", name, tagOf(t, w, name))
		}
	}
	commit(t, w)
	r := p.reader(t)
	one.check(t, r, "v1")
	one.check(t, r, one.Digest.String())
	other.check(t, r, "v2")
}

// Tags are written, written again, and moved.
func checkTags(t *testing.T, p Place) {
	one, other := newImage(t, "one", layer("one", 10)), newImage(t, "other", layer("other", 10))
	w := p.Writer(t)
	for _, step := range []struct {
		i   image
		tag string
	}{{one, ""}, {one, "v1"}, {one, "v2"}, {other, "v1"}, {other, "v1"}, {other, "V1.2_3-x"}} {
		if err := step.i.write(t.Context(), w, step.tag); err != nil {
			t.Fatal(err)
		}
		if step.tag != "" && tagOf(t, w, step.tag) != step.i.Digest {
			t.Errorf("%s is not what was written", step.tag)
		}
	}
	commit(t, w)
	r := p.reader(t)
	other.check(t, r, "v1")
	one.check(t, r, "v2")
	other.check(t, r, "V1.2_3-x")
	checkReader(t, r, "v1", "v2", "V1.2_3-x", one.Digest.String())
	if tags, all, err := r.Tags(t.Context(), 0); r.Can().Tags && (len(tags) != 3 || !all || err != nil) {
		t.Errorf("Tags = %v, all: %v, %v", tags, all, err)
	}
}

// checkConditions checks that a tag is not overwritten if it stands for another image than the writer expects.
func checkConditions(t *testing.T, p Place) {
	one, other := newImage(t, "one", layer("one", 10)), newImage(t, "other", layer("other", 10))
	w := p.Writer(t)
	if err := errors.Join(one.write(t.Context(), w, ""), other.write(t.Context(), w, "")); err != nil {
		t.Fatal(err)
	}
	if p.Conditions && !w.Can().Conditions {
		t.Error("it compares tags, and does not say so")
	}
	for _, step := range []struct {
		i    image
		when string
		met  bool
	}{
		{one, one.Digest.String(), false}, // there is no tag yet
		{one, store.IfNone, true},
		{other, store.IfNone, false},
		{other, other.Digest.String(), false},
		{other, one.Digest.String(), true},
		{one, "", true},
	} {
		before := tagOf(t, w, "v1")
		err := w.WriteManifest(t.Context(), step.i.content, step.i.MediaType, store.WriteOptions{Tag: "v1", If: step.when})
		now := tagOf(t, w, "v1")
		switch {
		case err == nil && (step.met || !p.Conditions) && now == step.i.Digest:
		case errors.Is(err, store.ErrChanged) && !step.met && w.Can().Conditions && now == before:
		default:
			t.Errorf("If %q: the tag was %q and is %q: %v", step.when, before, now, err)
		}
	}
	commit(t, w)
}

// An index of which an image is missing is either written, or refused with [store.ErrSparse]; after a refusal
// Can().NoSparse is set.
func checkSparse(t *testing.T, p Place) {
	w := p.Writer(t)
	there, missing := newImage(t, "there", layer("there", 10)), newImage(t, "missing", layer("missing", 10))
	if err := there.write(t.Context(), w, "v1"); err != nil {
		t.Fatal(err)
	}
	x := newIndex(t, there, missing)
	err := w.WriteManifest(t.Context(), x.content, x.MediaType, store.WriteOptions{Tag: "sparse", Sparse: true})
	switch {
	case errors.Is(err, store.ErrSparse):
		if errors.Is(err, store.ErrIncomplete) && w.Can().NoSparse == nil {
			t.Errorf("it takes no such index, and does not say so: %v", err)
		}
		if tagOf(t, w, "sparse") != "" {
			t.Error("refused, and written")
		}
		commit(t, w)
	case err != nil:
		t.Fatal(err)
	default:
		if err := w.Can().NoSparse; err != nil {
			t.Errorf("written, and it says that it takes none: %v", err)
		}
		commit(t, w)
		r := p.reader(t)
		x.blob.check(t, r, "sparse")
		if _, err := r.Head(t.Context(), missing.Digest.String()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is missing in the index: %v", err)
		}
		there.check(t, r, there.Digest.String())
	}
}

// check compares a manifest at a place with what was written.
func (b blob) check(t testing.TB, r store.Reader, name string) {
	t.Helper()
	image{blob: b}.check(t, r, name)
}

// A manifest is refused for a blob that has vanished, and is taken when the blob has been written again.
func checkVanished(t *testing.T, p Place) {
	if p.Vanish == nil {
		return
	}
	for name, size := range map[string]int{"small": 10, "large": large} {
		w := p.Writer(t)
		kept, lost := layer("kept "+name, 10), layer("lost "+name, size)
		before, after := newImage(t, "before", kept, lost), newImage(t, "after", lost)
		if err := before.write(t.Context(), w, "before"); err != nil {
			t.Fatal(err)
		}
		if err := store.WriteBytes(t.Context(), w, after.blobs[0].Descriptor, after.blobs[0].content); err != nil {
			t.Fatal(err)
		}
		p.Vanish(t, lost.Digest)
		for _, w := range []store.Writer{p.Writer(t), w} {
			if there, err := w.HasBlob(t.Context(), lost.Descriptor); there || err != nil {
				t.Errorf("HasBlob of a blob that has vanished: %v, %v", there, err)
			}
			err := w.WriteManifest(t.Context(), after.content, after.MediaType, store.WriteOptions{Tag: "after"})
			if !w.Can().Complete || !errors.Is(err, store.ErrIncomplete) {
				t.Errorf("a manifest whose blob has vanished: %v", err)
			}
		}
		if err := after.write(t.Context(), w, "after"); err != nil {
			t.Errorf("the blob is written again: %v", err)
		}
		commit(t, w)
		checkReader(t, p.reader(t), "before", "after")
	}
}

// What is attached to an image is listed once, in an order that stays.
func checkReferrers(t *testing.T, p Place) {
	w := p.Writer(t)
	i := newIndex(t, newImage(t, "subject", layer("subject", 10)))
	if err := i.write(t.Context(), w, "v1"); err != nil {
		t.Fatal(err)
	}
	if !w.Can().Attachments {
		commit(t, w)
		return
	}
	var before, written []digest.Digest
	for n := range 4 {
		subject := i.Descriptor
		a := newArtifact(t, &subject, map[string]string{"n": fmt.Sprint(n)})
		for _, tag := range []string{"", "", fmt.Sprint("artifact", n)} {
			if err := a.write(t.Context(), w, tag); err != nil {
				t.Fatal(err)
			}
		}
		written = append(written, a.Digest)
		if n == 1 && !p.Replaced {
			commit(t, w)
			w = p.Writer(t)
		}
		now := checkList(t, w, i.Descriptor)
		isNew := func(d digest.Digest) bool { return !slices.Contains(before, d) }
		kept := slices.DeleteFunc(slices.Clone(now), isNew)
		if len(now) != n+1 || len(kept) != n || !p.LooseLists && !slices.Equal(kept, before) {
			t.Errorf("listed are %v, after %v", now, before)
		}
		before = now
	}
	found, err := w.Referrers(t.Context(), i.Digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.ArtifactType != "application/x-test" && !p.LooseLists || len(d.Annotations) != 1 {
			t.Errorf("it is listed as %+v", d)
		}
	}
	commit(t, w)
	r := p.reader(t)
	now := checkList(t, r, i.Descriptor)
	slices.Sort(now)
	slices.Sort(written)
	if !slices.Equal(now, written) {
		t.Errorf("listed are %v, written %v", now, written)
	}
	checkReader(t, r, "v1", "artifact0", written[0].String(), written[3].String())
}
