package layers

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// A finished layer is copied if writing it with the same options would give the same bytes, and not otherwise.
func TestFinishedLayersAreCopied(t *testing.T) {
	plain := Layer{Name: "l", Entries: []Entry{Bytes("a", 0o644, bytes.Repeat([]byte("text "), 1000))}}
	write := func(l Layer, o Options) (Blob, string, error) {
		var out bytes.Buffer
		b, err := l.Write(t.Context(), &out, o)
		return b, out.String(), err
	}
	gzip := Options{Compression: Gzip}
	blob, packed, err := write(plain, gzip)
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	finished := func(text string) Layer {
		l := plain
		none := Finished{Blob: Blob{Compression: "another"}}
		l.Finished = []Finished{none, {Blob: blob, Open: func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(bytes.NewReader([]byte(text))), nil
		}}}
		return l
	}
	if b, got, err := write(finished(packed), gzip); err != nil || b != blob || got != packed || opened != 1 {
		t.Errorf("%+v, %v, opened %d times", b, err, opened)
	}
	for _, text := range []string{packed[:len(packed)-1], packed + "x", "x" + packed[1:], ""} {
		if _, _, err := write(finished(text), gzip); !errors.Is(err, ErrChanged) {
			t.Errorf("another layer is taken: %v", err)
		}
	}
	opened = 0
	for _, o := range []Options{{Compression: Zstd}, {Compression: Uncompressed}} {
		want, text, err := write(plain, o)
		if err != nil {
			t.Fatal(err)
		}
		if b, got, err := write(finished(packed), o); err != nil || b != want || got != text || opened != 0 {
			t.Errorf("%+v: %+v, %v, opened %d times", o, b, err, opened)
		}
	}
}
