package storetest

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// TestReader checks a place that is read. names are tags and digests of images that are there, with all that they refer
// to; blobs are read into memory.
func TestReader(t *testing.T, r store.Reader, names ...string) { checkReader(t, r, names...) }

func checkReader(t testing.TB, r store.Reader, names ...string) {
	t.Helper()
	seen := map[digest.Digest]bool{}
	for _, name := range names {
		if d, ok := checkManifest(t, r, name, seen); ok {
			checkList(t, r, d)
		}
	}
	checkAbsent(t, r)
	checkHostileReads(t, r)
	checkTagList(t, r, names)
}

// checkManifest checks a manifest, by its name and by its digest, and what it refers to.
func checkManifest(t testing.TB, r store.Reader, name string, seen map[digest.Digest]bool) (v1.Descriptor, bool) {
	t.Helper()
	text, mediaType, err := r.Manifest(t.Context(), name)
	if err != nil {
		t.Errorf("Manifest(%q): %v", name, err)
		return v1.Descriptor{}, false
	}
	is := blobOf(mediaType, text)
	if mediaType == "" {
		t.Errorf("Manifest(%q): no media type", name)
	}
	if digest.Digest(name).Validate() == nil && name != is.Digest.String() {
		t.Errorf("Manifest(%q): a text with the digest %s", name, is.Digest)
	}
	for _, by := range []string{name, is.Digest.String()} {
		if d, err := r.Head(t.Context(), by); err != nil || d.Digest != is.Digest || d.Size != is.Size ||
			d.MediaType != mediaType {
			t.Errorf("Head(%q) = %+v, %v; Manifest has %+v", by, d, err, is.Descriptor)
		}
	}
	if again, kind, err := r.Manifest(t.Context(), is.Digest.String()); err != nil || !bytes.Equal(again, text) ||
		kind != mediaType {
		t.Errorf("Manifest(%q): %s, and by its digest %s: %v", name, mediaType, kind, err)
	}
	if seen[is.Digest] {
		return is.Descriptor, true
	}
	seen[is.Digest] = true
	parts, err := store.PartsOf(text)
	if err != nil {
		t.Errorf("Manifest(%q): %v", name, err)
		return is.Descriptor, true
	}
	for _, d := range parts.Manifests {
		checkManifest(t, r, d.Digest.String(), seen)
	}
	for _, d := range parts.Blobs {
		if !store.IsForeign(d) && !seen[d.Digest] {
			seen[d.Digest] = true
			checkBlob(t, r, d)
		}
	}
	return is.Descriptor, true
}

// checkBlob checks a blob that is there.
func checkBlob(t testing.TB, r store.Reader, d v1.Descriptor) {
	t.Helper()
	if there, err := r.HasBlob(t.Context(), d); err != nil || !there {
		t.Errorf("HasBlob(%s) = %v, %v", d.Digest, there, err)
	}
	whole, err := read(t, r, d, 0)
	if err != nil || digest.FromBytes(whole) != d.Digest || int64(len(whole)) != d.Size {
		t.Errorf("Blob(%s): %d bytes with the digest %s: %v", d.Digest, len(whole), digest.FromBytes(whole), err)
		return
	}
	for _, from := range []int64{1, d.Size / 2, d.Size - 1, d.Size} {
		if from < 0 {
			continue
		}
		if rest, err := read(t, r, d, from); err != nil || !bytes.Equal(rest, whole[from:]) {
			t.Errorf("Blob(%s) from %d: %d bytes of %d: %v", d.Digest, from, len(rest), d.Size-from, err)
		}
	}
	for _, from := range []int64{-1, d.Size + 1} {
		if rest, err := read(t, r, d, from); err == nil {
			t.Errorf("Blob(%s) of %d bytes from %d: %d bytes", d.Digest, d.Size, from, len(rest))
		}
	}
	for _, by := range []int64{-1, 1} {
		other := d
		if other.Size += by; other.Size < 0 {
			continue
		}
		if there, err := r.HasBlob(t.Context(), other); err == nil && there {
			t.Errorf("HasBlob(%s) with %d bytes, which has %d", d.Digest, other.Size, d.Size)
		}
		if _, err := read(t, r, other, 0); err == nil {
			t.Errorf("Blob(%s) with %d bytes, which has %d: no error", d.Digest, other.Size, d.Size)
		}
	}
	body, err := r.Blob(t.Context(), d, 0) // one that is not read to its end
	if err == nil {
		err = body.Close()
	}
	if err != nil {
		t.Errorf("Blob(%s), and closed: %v", d.Digest, err)
	}
}

// checkAbsent asks for what is not there.
func checkAbsent(t testing.TB, r store.Reader) {
	t.Helper()
	none := layer("what is nowhere", 100)
	for _, name := range []string{"no-such-tag", none.Digest.String()} {
		if _, err := r.Head(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Head(%q), which is not there: %v", name, err)
		}
		if _, _, err := r.Manifest(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Manifest(%q), which is not there: %v", name, err)
		}
	}
	if there, err := r.HasBlob(t.Context(), none.Descriptor); there || err != nil {
		t.Errorf("HasBlob of one that is not there: %v, %v", there, err)
	}
	if _, err := read(t, r, none.Descriptor, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Blob that is not there: %v", err)
	}
	if found, err := r.Referrers(t.Context(), none.Digest, nil); len(found) > 0 || err != nil {
		t.Errorf("Referrers of nothing: %v, %v", found, err)
	}
}

// hostileNames are no tags and no digests. Some are ways out of the place, or to what is there.
var hostileNames = []string{"", ".", "..", "../v1", "../manifests/v1", "x/../v1", "/v1", "v1/", "v1?x=1", "v1#x",
	"v1%2f..%2fv1", "-v1", "v1 ", "v1\n", "v1\x00", "sha256:", "sha256:abc", "sha256:../../../../etc/passwd",
	"SHA256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("A", 64), "md5:" + strings.Repeat("a", 32),
	strings.Repeat("v", 300)}

// hostileDigests are no digests.
var hostileDigests = []digest.Digest{"", "sha256:", "sha256:abc", "sha256:../../../../../../etc/passwd",
	"sha256:" + digest.Digest(strings.Repeat("A", 64)), "md5:" + digest.Digest(strings.Repeat("a", 32)), "../blobs/x"}

// checkHostileReads asks for what cannot be there.
func checkHostileReads(t testing.TB, r store.Reader) {
	t.Helper()
	for _, name := range hostileNames {
		if d, err := r.Head(t.Context(), name); err == nil {
			t.Errorf("Head(%q) = %+v", name, d)
		}
		if text, _, err := r.Manifest(t.Context(), name); err == nil {
			t.Errorf("Manifest(%q) = %s", name, text)
		}
	}
	for _, name := range hostileDigests {
		d := v1.Descriptor{Digest: name, Size: 10}
		if there, err := r.HasBlob(t.Context(), d); err == nil && there {
			t.Errorf("HasBlob(%q)", name)
		}
		if content, err := read(t, r, d, 0); err == nil {
			t.Errorf("Blob(%q) = %q", name, content)
		}
		if found, err := r.Referrers(t.Context(), name, nil); err == nil && len(found) > 0 {
			t.Errorf("Referrers(%q) = %v", name, found)
		}
	}
}

// checkTagList looks for names in the list of tags.
func checkTagList(t testing.TB, r store.Reader, names []string) {
	t.Helper()
	tags, all, err := r.Tags(t.Context(), 0)
	if !r.Can().Tags {
		if err != nil && !errors.Is(err, store.ErrNoTags) {
			t.Errorf("Tags: %v", err)
		}
		return
	}
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && len(names) == 0) || err == nil && !all {
		t.Errorf("Tags = %v, all: %v, %v", tags, all, err)
	}
	once := slices.Compact(slices.Sorted(slices.Values(tags)))
	if len(once) != len(tags) {
		t.Errorf("Tags, some twice: %v", tags)
	}
	for _, name := range names {
		if digest.Digest(name).Validate() != nil && !slices.Contains(tags, name) {
			t.Errorf("Tags = %v, without %s", tags, name)
		}
	}
	for _, tag := range tags {
		if _, err := r.Head(t.Context(), tag); err != nil {
			t.Errorf("Head(%q), which is in the list of tags: %v", tag, err)
		}
	}
}

// checkList reads the list of what refers to a manifest, which has each once, and returns it.
func checkList(t testing.TB, r store.Reader, subject v1.Descriptor) []digest.Digest {
	t.Helper()
	tags, _, err := r.Tags(t.Context(), 0)
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	if err != nil || !r.Can().Tags {
		has = nil
	}
	_, _ = r.Referrers(cancelled(t), subject.Digest, nil) // the end of this caller's context is no answer for others
	var first []digest.Digest
	for i, has := range []func(string) bool{nil, has} {
		found, err := r.Referrers(t.Context(), subject.Digest, has)
		if err != nil {
			t.Errorf("Referrers(%s): %v", subject.Digest, err)
			return nil
		}
		var list []digest.Digest
		for _, d := range found {
			if slices.Contains(list, d.Digest) {
				t.Errorf("Referrers(%s): %s twice", subject.Digest, d.Digest)
			}
			list = append(list, d.Digest)
		}
		if i > 0 && !slices.Equal(slices.Sorted(slices.Values(list)), slices.Sorted(slices.Values(first))) {
			t.Errorf("Referrers(%s): %v, and then %v", subject.Digest, first, list)
		}
		first = list
	}
	return first
}
