package blobcache

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
)

func notesIn(t testing.TB, dir string, o Options) *Notes {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(err error) { t.Errorf("warning: %v", err) }
	}
	h, err := openHints(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h.Sealed([]byte("a key of many bytes"))
}

// A note counts only if it was sealed with the key of its reader: write access to the directory alone decides
// nothing.
func TestNotesAreSealed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	mine := notesIn(t, dir, Options{})
	key, text := noteNumber(1)
	forged := []byte("forged")
	for name, write := range map[string]func(){
		"as a hint":           func() { mine.hints.Put(key, forged) },
		"with another key":    func() { mine.hints.Sealed([]byte("another key of many bytes")).Put(key, forged) },
		"with the digest":     func() { overwrite(t, dir, key, append(sum(sha256.New(), key, forged), forged...)) },
		"with an empty key":   func() { overwrite(t, dir, key, append(sum(hmac.New(sha256.New, nil), key, forged), forged...)) },
		"without any header":  func() { overwrite(t, dir, key, forged) },
		"under the good seal": func() { overwrite(t, dir, key, append(sum(hmac.New(sha256.New, mine.seal), key, text), forged...)) },
	} {
		mine.Put(key, text)
		if got, ok := mine.Get(key); !ok || string(got) != string(text) {
			t.Fatalf("%s: before: %q, %v", name, got, ok)
		}
		write()
		if got, ok := mine.Get(key); ok {
			t.Errorf("%s: got %q", name, got)
		}
	}
	mine.Put(key, text)
	if mine.hints.Sealed([]byte("short")) != nil {
		t.Error("a short key seals")
	}
	if got, ok := mine.hints.Get(key); ok {
		t.Errorf("a note counts as a hint: %q", got)
	}
}

// overwrite replaces the file of an entry.
func overwrite(t *testing.T, dir string, key digest.Digest, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, blobEntry(key)), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func noteNumber(i int) (digest.Digest, []byte) {
	return digest.FromString(fmt.Sprint("key ", i)), fmt.Appendf(nil, "note %d", i)
}

func TestNotesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	n := notesIn(t, dir, Options{})
	key, text := noteNumber(1)
	if got, ok := n.Get(key); ok {
		t.Errorf("before: %q", got)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking has made the directory: %v", err)
	}
	n.Put(key, []byte("of before"))
	n.Put(key, text)
	for _, reader := range []*Notes{n, notesIn(t, dir, Options{})} {
		if got, ok := reader.Get(key); !ok || string(got) != string(text) {
			t.Errorf("got %q, %v", got, ok)
		}
	}
	other, _ := noteNumber(2)
	n.Put(other, nil)
	if got, ok := n.Get(other); !ok || len(got) != 0 {
		t.Errorf("an empty note: %q, %v", got, ok)
	}
	n.Put(other, make([]byte, maxNote))
	if got, ok := n.Get(other); !ok || len(got) != 0 {
		t.Errorf("a note that is too long has taken the place of another: %d bytes, %v", len(got), ok)
	}
	n.Forget(other)
	if _, ok := n.Get(other); ok {
		t.Error("a forgotten note is still there")
	}
	for _, key := range []digest.Digest{"", "sha256:../../x",
		"sha512:" + digest.Digest(other.Encoded()+other.Encoded())} {
		n.Put(key, text)
		if _, ok := n.Get(key); ok {
			t.Errorf("a note of %q", key)
		}
		n.Forget(key)
	}
	var none *Notes
	none.Put(key, text)
	none.Forget(key)
	if _, ok := none.Get(key); ok {
		t.Error("no notes at all are not empty")
	}
	noPartials(t, dir)
}

// A note whose file was changed counts as missing.
func TestDamagedNotesAreMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	n := notesIn(t, dir, Options{})
	rng := rand.New(rand.NewPCG(3, 4))
	key, text := noteNumber(1)
	path := filepath.Join(dir, blobEntry(key))
	for i := range 200 {
		n.Put(key, text)
		if got, ok := n.Get(key); !ok || string(got) != string(text) {
			t.Fatalf("%d: an entry that was damaged cannot be replaced: %q, %v", i, got, ok)
		}
		if err := damage(rng, path); err != nil {
			t.Fatal(err)
		}
		if got, ok := n.Get(key); ok {
			t.Fatalf("%d: got %q", i, got)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := noteNumber(2)
	n.Put(key, text)
	n.Put(other, nil)
	if err := os.Rename(path, filepath.Join(dir, blobEntry(other))); err != nil {
		t.Fatal(err)
	}
	if got, ok := n.Get(other); ok {
		t.Errorf("a note under the name of another: %q", got)
	}
}

// Concurrent writers do not disturb each other, and the directory stays within its size limit.
func TestManyWritersOfNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	const bound = 40 * cacheUnit
	var wg sync.WaitGroup
	for w := range 4 {
		n := notesIn(t, dir, Options{MaxBytes: bound})
		wg.Go(func() {
			for i := range 120 {
				key, text := noteNumber(i/2 + w%2*10_000)
				n.Put(key, text)
				if got, ok := n.Get(key); ok && string(got) != string(text) {
					t.Errorf("note %d: %q", i, got)
				}
			}
		})
	}
	wg.Wait()
	n := notesIn(t, dir, Options{MaxBytes: bound})
	info, err := n.hints.Info()
	if err != nil || info.Blobs == 0 || info.Bytes > bound*9/8 {
		t.Errorf("%+v, %v", info, err)
	}
	if p, err := n.hints.Prune(t.Context(), PruneOptions{}); err != nil || p.Blobs != info.Blobs || p.LeftBlobs != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	noPartials(t, dir)
}
