package medium_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func partials(t testing.TB, dir string) (list []string) {
	for _, n := range names(t, dir) {
		if strings.HasSuffix(n, ".partial") {
			list = append(list, n)
		}
	}
	return list
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run that was killed at any byte goes on: what was whole is not fetched again, and the archive is that of a run that
// was not interrupted, byte for byte.
func TestResume(t *testing.T) {
	s := newSample(t)
	for _, form := range bothForms {
		for _, segment := range []int64{0, 1_500_000} {
			t.Run(fmt.Sprintf("%s %d", form, segment), func(t *testing.T) {
				o := medium.Options{Form: form, SegmentBytes: segment, Key: "one"}
				whole := t.TempDir()
				w := create(t, whole, o)
				s.write(t, w)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				left := partials(t, whole)
				want := func() *medium.Account {
					dir := t.TempDir()
					w := create(t, dir, o)
					s.write(t, w)
					return finish(t, w, medium.Contents{})
				}()
				for i, name := range left {
					length := size(t, whole, name)
					// The beginning, every part of a header and of the end, the middle, and bytes all over.
					cuts := []int64{0, 1, 511, 512, 513, length - 1025, length - 1024, length - 1023, length - 1,
						length}
					for at := int64(700); at < length; at += length/7 + 1 {
						cuts = append(cuts, at)
					}
					for _, cut := range cuts {
						dir := t.TempDir()
						copyFile(t, filepath.Join(whole, ".mirror.journal"), filepath.Join(dir, ".mirror.journal"))
						for _, before := range left[:i+1] {
							copyFile(t, filepath.Join(whole, before), filepath.Join(dir, before))
						}
						if err := os.Truncate(filepath.Join(dir, name), max(cut, 0)); err != nil {
							t.Fatal(err)
						}
						s.goesOn(t, dir, o, want)
					}
				}
				// A page that did not reach the disk: what is behind it does not count.
				dir := t.TempDir()
				for _, name := range append(slices.Clone(left), ".mirror.journal") {
					copyFile(t, filepath.Join(whole, name), filepath.Join(dir, name))
				}
				f, err := os.OpenFile(filepath.Join(dir, left[0]), os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteAt(make([]byte, 4096), 1_000_000)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
				s.goesOn(t, dir, o, want)
			})
		}
	}
}

func (s *sample) goesOn(t *testing.T, dir string, o medium.Options, want *medium.Account) {
	t.Helper()
	var reused, started int64
	o.Event = func(e store.Event) {
		switch e.Kind {
		case store.EventVerified:
			reused += e.Size
		case store.EventBlobStart:
			started += e.Size
		}
	}
	w := create(t, dir, o)
	if w.Resumed() != reused {
		t.Errorf("%d bytes instead of %d", w.Resumed(), reused)
	}
	s.write(t, w)
	got := finish(t, w, medium.Contents{})
	if !slices.Equal(got.Segments, want.Segments) || reused+started > want.BlobBytes ||
		reused+started < want.BlobBytes-512 { // the archive's own list of referrers is not counted
		t.Errorf("%+v instead of %+v, %d and %d bytes", got.Segments, want.Segments, reused, started)
	}
	if list := names(t, dir); len(list) != len(want.Segments) {
		t.Error(list)
	}
	s.same(t, read(t, dir))
}

// What another run left is removed, and said so; an archive that is whole stays until the new one is.
func TestOtherRun(t *testing.T) {
	s := newSample(t)
	dir := t.TempDir()
	w := create(t, dir, medium.Options{Key: "one", SegmentBytes: 1_500_000})
	s.write(t, w)
	old := finish(t, w, medium.Contents{})
	w = create(t, dir, medium.Options{Key: "two"})
	write(t, w.Repository("acme/app"), s.app, "v1")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.same(t, read(t, dir))
	warned := ""
	w = create(t, dir, medium.Options{Key: "three", Event: func(e store.Event) {
		if e.Kind == store.EventWarning {
			warned += e.Err.Error()
		}
	}})
	if !strings.Contains(warned, "of another run") || w.Resumed() != 0 {
		t.Errorf("%q, %d", warned, w.Resumed())
	}
	write(t, w.Repository("acme/app"), s.app, "v1")
	account := finish(t, w, medium.Contents{})
	if len(old.Segments) != 2 || len(account.Removed) != 2 || !slices.Equal(names(t, dir), []string{
		"mirror_000001.tar"}) {
		t.Errorf("%v %v %v", old.Segments, account.Removed, names(t, dir))
	}
	// A run that is given up leaves nothing.
	w = create(t, dir, medium.Options{Key: "four"})
	write(t, w.Repository("acme/app"), s.app, "v1")
	if err := w.Discard(); err != nil || len(names(t, dir)) != 1 {
		t.Error(err, names(t, dir))
	}
}

// A run that was killed while segments got their names is finished by the next one, and readers see its archive.
func TestKilledWhileNaming(t *testing.T) {
	s := newSample(t)
	o := medium.Options{Key: "one", SegmentBytes: 1_500_000}
	done := t.TempDir()
	w := create(t, done, o)
	s.write(t, w)
	account := finish(t, w, medium.Contents{})
	list := `{"segments":[`
	for i, seg := range account.Segments {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"name":%q,"bytes":%d,"sha256":%q}`, seg.Name, seg.Bytes, seg.SHA256)
	}
	for renamed := range len(account.Segments) + 1 {
		dir := t.TempDir()
		old := create(t, dir, medium.Options{Key: "old", SegmentBytes: 1 << 20})
		write(t, old.Repository("acme/old"), simple(t, "old", 900, 900_000, 900_001, 900_002, 900_003, 900_004), "v1")
		finish(t, old, medium.Contents{})
		for i, seg := range account.Segments {
			to := seg.Name
			if i >= renamed {
				to = fmt.Sprintf(".mirror_%06d.partial", i+1)
			}
			copyFile(t, filepath.Join(done, seg.Name), filepath.Join(dir, to))
		}
		for name, text := range map[string]string{".mirror.commit": list + "]}", ".mirror.journal": "{}"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s.same(t, read(t, dir))
		w := create(t, dir, o)
		if err := w.Discard(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); len(got) != len(account.Segments) {
			t.Error(renamed, got)
		}
		s.same(t, read(t, dir))
	}
}

// The same beside an archive that stays: it has all its segments at any moment, and readers read both.
func TestKilledWhileNamingBesideAnOlderArchive(t *testing.T) {
	s := newSample(t)
	o := medium.Options{Key: "one", SegmentBytes: 1_500_000, Keep: true, Beside: true}
	done := t.TempDir()
	w := create(t, done, medium.Options{Key: "old", SegmentBytes: 1 << 20})
	write(t, w.Repository("acme/old"), simple(t, "old", 900, 900_000, 900_001, 900_002, 900_003, 900_004), "v1")
	kept := finish(t, w, medium.Contents{}).Segments
	w = create(t, done, o)
	s.write(t, w)
	account := finish(t, w, medium.Contents{})
	if len(account.Kept) != len(kept) || len(account.Removed) > 0 || account.Segments[0].Name !=
		segmentName(len(kept)+1) {
		t.Fatalf("%+v", account)
	}
	list, err := json.Marshal(map[string]any{"kept": account.Kept, "segments": account.Segments})
	if err != nil {
		t.Fatal(err)
	}
	for renamed := range len(account.Segments) + 1 {
		dir := t.TempDir()
		for _, name := range account.Kept {
			copyFile(t, filepath.Join(done, name), filepath.Join(dir, name))
		}
		for i, seg := range account.Segments {
			to := seg.Name
			if i >= renamed {
				to = fmt.Sprintf(".mirror_%06d.partial", i+1)
			}
			copyFile(t, filepath.Join(done, seg.Name), filepath.Join(dir, to))
		}
		for name, text := range map[string]string{".mirror.commit": string(list), ".mirror.journal": "{}"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		both := func() {
			r := read(t, dir)
			if r.Tags("acme/old")["v1"] == "" || len(r.Tags("acme/app")) == 0 || len(r.Segments()) != len(kept)+len(account.Segments) {
				t.Errorf("%d renamed: %v", renamed, r.Segments())
			}
		}
		both()
		w := create(t, dir, o)
		if err := w.Discard(); err != nil {
			t.Fatal(err)
		}
		both()
	}
}

// Of two runs in one directory the second one gets an error that says so.
func TestTwoRuns(t *testing.T) {
	dir := t.TempDir()
	create(t, dir, medium.Options{})
	_, err := medium.Create(context.Background(), dir, medium.Options{})
	if !errors.Is(err, medium.ErrBusy) || fault.ClassOf(err) != fault.Conflict {
		t.Error(err)
	}
}

// What the destination has is left out and listed; a reader says so, and finds it in the archive that had it.
func TestLeftOut(t *testing.T) {
	s := newSample(t)
	for _, form := range bothForms {
		first, second := t.TempDir(), t.TempDir()
		w := create(t, first, medium.Options{Form: form})
		s.write(t, w)
		finish(t, w, medium.Contents{})
		has := read(t, first)
		w = create(t, second, medium.Options{Form: form, Have: has.Has,
			Where: func(digest.Digest) []string { return []string{"acme/app"} }, Since: new(day(1))})
		s.write(t, w)
		added := simple(t, "added", 1, 1_200_000, 7)
		write(t, w.Repository("acme/multi"), added, "v2")
		if d, err := w.Repository("acme/app").Head(context.Background(), hexTag(s.app)); err != nil ||
			d.Digest != s.app.manifest.Digest {
			t.Error(d, err)
		}
		account := finish(t, w, medium.Contents{})
		if account.Blobs != 3 || account.LeftOut < 20 || account.LeftOutBytes < 2_000_000 {
			t.Errorf("%+v", account)
		}
		r := read(t, second)
		list, err := r.LeftOut(context.Background())
		if err != nil || len(list) != account.LeftOut || !slices.Equal(list[0].Repositories, []string{"acme/app"}) ||
			!list[0].Since.Equal(day(1)) {
			t.Errorf("%d, %v", len(list), err)
		}
		if had := w.Had(); len(had) != account.Blobs+account.LeftOut ||
			had[added.blobs[2].Digest] != "acme/multi" || had[s.bundle.blobs[1].Digest] != "acme/app" {
			t.Error(had)
		}
		app := r.Repository("acme/app")
		if _, _, err := app.Manifest(context.Background(), hexTag(s.app)); !errors.Is(err, medium.ErrLeftOut) {
			t.Error(err)
		}
		if _, err := app.Blob(context.Background(), s.app.blobs[1].Descriptor, 0); !errors.Is(err, medium.ErrLeftOut) {
			t.Error(err)
		}
		if d, err := app.Head(context.Background(), hexTag(s.app)); err != nil || d.Digest != s.app.manifest.Digest ||
			d.Size != s.app.manifest.Size || d.MediaType != s.app.manifest.MediaType {
			t.Error(d, err)
		}
		r = read(t, second, first)
		s.same(t, r)
		same(t, r.Repository("acme/multi"), added, "v2")
		if list, err := r.LeftOut(context.Background()); err != nil || len(list) != 0 {
			t.Error(list, err)
		}
	}
}

// Images that are not complete are an error, or are in no list if they have no tag.
func TestIncomplete(t *testing.T) {
	ctx := context.Background()
	image := simple(t, "app", 1, 5)
	dir := t.TempDir()
	w := create(t, dir, medium.Options{})
	r := w.Repository("acme/app")
	if err := r.WriteManifest(ctx, image.manifest.content, image.manifest.MediaType, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	other := simple(t, "other", 7, 5)
	write(t, r, other, "v1")
	if a := finish(t, w, medium.Contents{}); a.Unused != 1 || a.UnusedBytes != image.manifest.Size {
		t.Errorf("%+v", a)
	}
	if got := read(t, dir).Tags("acme/app"); len(got) != 1 || got["v1"] != other.manifest.Digest {
		t.Error(got)
	}
	w = create(t, dir, medium.Options{})
	r = w.Repository("acme/app")
	if err := r.WriteManifest(ctx, image.manifest.content, image.manifest.MediaType,
		store.WriteOptions{Tag: "v1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(ctx, medium.Contents{}); !errors.Is(err, fault.ErrIntegrity) ||
		!strings.Contains(err.Error(), "acme/app:v1") {
		t.Error(err)
	}
	// An index without some of its images is one that was mirrored for some platforms.
	w2 := create(t, t.TempDir(), medium.Options{Form: medium.OCMirror})
	index := indexOf(t, image, other)
	write(t, w2.Repository("acme/app"), other, "")
	if err := w2.Repository("acme/app").WriteManifest(ctx, index.manifest.content, index.manifest.MediaType,
		store.WriteOptions{Tag: "v1"}); err != nil {
		t.Fatal(err)
	}
	finish(t, w2, medium.Contents{})
	for _, bad := range []string{"", "Acme/app", "../x", "a//b", "a/_layers/b", strings.Repeat("a/", 300) + "a"} {
		_, err := w.Repository(bad).WriteBlob(ctx, image.blobs[0].Descriptor, opener(image.blobs[0].content))
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []digest.Digest{"", "sha256:00", "md5:x", "sha256:../../../x"} {
		d := image.blobs[0].Descriptor
		d.Digest = bad
		if _, err := r.WriteBlob(ctx, d, opener(nil)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
