package layers

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/opencontainers/go-digest"
)

// keyOf hashes the files of a layer and returns its key.
func keyOf(t testing.TB, l Layer, o Options) digest.Digest {
	t.Helper()
	l, err := l.Hash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := l.Key(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Keys are in the annotations of published images. If TestDigestsAreGolden fails, a generation has to be raised, and
// then these keys change too.
func TestKeysAreGolden(t *testing.T) {
	golden := map[Compression]digest.Digest{
		Gzip:         "sha256:916d0eecce1cfc2ff82421184be76e3d17631add0d5ffd8ee3f977d50d6e89d0",
		Zstd:         "sha256:b5c69282875d46524b626af12f7e22f88db5c50791b643bb14f7f16a6541b0cd",
		Uncompressed: "sha256:3bce73017e61cd6413f41dc3858a8ac65d1191512f4f719baaf33d893a0dcac0",
	}
	for c, want := range golden {
		if got := keyOf(t, sample(), Options{Compression: c}); got != want {
			t.Errorf("%s: key %s, want %s", c, got, want)
		}
	}
}

// Two layers have the same key if and only if they have the same bytes.
func TestKeyTellsLayersApart(t *testing.T) {
	a := func() []Entry {
		return []Entry{Bytes("a", 0o644, []byte("one")), Bytes("b", 0o644, nil), symlink("l", "a"), Dir("d", 0o755)}
	}
	with := func(change func(e []Entry) []Entry) Layer { return Layer{Entries: change(a())} }
	gz := Options{Compression: Gzip}
	cases := map[string]struct {
		l Layer
		o Options
	}{
		"as it is":            {Layer{Entries: a()}, gz},
		"another compression": {Layer{Entries: a()}, Options{Compression: Zstd}},
		"another name":        {with(func(e []Entry) []Entry { e[0].Name = "c"; e[2].Link = "a"; return e }), gz},
		"another content": {with(func(e []Entry) []Entry { e[0] = Bytes("a", 0o644, []byte("two")); return e }),
			gz},
		"content elsewhere": {with(func(e []Entry) []Entry {
			e[0], e[1] = Bytes("b", 0o644, []byte("one")), Bytes("a", 0o644, nil)
			return e
		}), gz},
		"another mode":       {with(func(e []Entry) []Entry { e[0].Mode = 0o755; return e }), gz},
		"a sticky directory": {with(func(e []Entry) []Entry { e[3].Mode |= fs.ModeSticky; return e }), gz},
		"another target":     {with(func(e []Entry) []Entry { e[2].Link = "b"; return e }), gz},
		"another kind":       {with(func(e []Entry) []Entry { e[2] = Hardlink("l", "a", 0o644); return e }), gz},
		"one entry less":     {with(func(e []Entry) []Entry { return e[1:] }), gz},
		"one entry more":     {with(func(e []Entry) []Entry { return append(e, Dir("d/e", 0o755)) }), gz},
		"what else is in it": {Layer{Entries: a(), MoreID: "x"}, gz},
	}
	seen := map[digest.Digest]string{}
	for name, c := range cases {
		k := keyOf(t, c.l, c.o)
		if other, twice := seen[k]; twice {
			t.Errorf("%q has the key of %q", name, other)
		}
		seen[k] = name
	}
	same := map[string]Layer{
		"another order":                 with(func(e []Entry) []Entry { e[0], e[3] = e[3], e[0]; return e }),
		"another name of the layer":     {Name: "other", Entries: a()},
		"an implied directory in words": {Entries: append(a(), Bytes("d/f/g", 0o644, nil), Dir("d/f", 0o755))},
	}
	for name, l := range same {
		want := Layer{Entries: a()}
		if name == "an implied directory in words" {
			want.Entries = append(want.Entries, Bytes("d/f/g", 0o644, nil))
		}
		if keyOf(t, l, gz) != keyOf(t, want, gz) {
			t.Errorf("%s: another key", name)
		}
	}
}

func TestLayerOfUnknownContentHasNoKey(t *testing.T) {
	more := func(context.Context) ([]Entry, error) { return nil, nil }
	if k := keyOf(t, Layer{More: more}, Options{Compression: Gzip}); k != "" {
		t.Errorf("more entries, of which nothing is known: key %s", k)
	}
	if k := keyOf(t, Layer{More: more, MoreID: "form 1"}, Options{Compression: Gzip}); k == "" {
		t.Error("more entries, of which all is known: no key")
	}
	if k, err := (Layer{Entries: []Entry{Bytes("a", 0o644, nil)}}).Key(Options{Compression: Gzip}); err == nil {
		t.Errorf("a file that was not hashed: key %s", k)
	}
	if k, err := (Layer{}).Key(Options{Compression: "lzma"}); err == nil {
		t.Errorf("an unknown codec: key %s", k)
	}
}

// A layer whose files no longer match the digests in its key is not written.
func TestFileWithAnotherDigestIsNotWritten(t *testing.T) {
	content := []byte("as it was")
	l, err := Layer{Entries: []Entry{Bytes("a", 0o644, content)}}.Hash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(t.Context(), io.Discard, Options{Compression: Gzip}); err != nil {
		t.Fatal(err)
	}
	copy(content, "AS IT IS!")
	if _, err := l.Write(t.Context(), io.Discard, Options{Compression: Gzip}); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	l.Entries[0].Digest, l.Entries[0].Size = "", 100
	if _, err := l.Hash(t.Context()); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that is shorter than it was: %v", err)
	}
	l.Entries[0].Size = 3
	if _, err := l.Hash(t.Context()); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that is longer than it was: %v", err)
	}
}
