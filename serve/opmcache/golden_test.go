package opmcache

import (
	"io"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/layers"
)

// Layers with these caches are cached by catalog and ID. If the bytes change, the ID must change too: otherwise the
// layer cache returns old layers.
func TestCachesAreGolden(t *testing.T) {
	golden := map[string]digest.Digest{
		"opm-json.2":   "sha256:1eb1109eef6241dcbfd7f5912c376fa9841c3cbedbe6376c8b7f97fc5d312e64",
		"opm-pogreb.2": "sha256:59786ba44d8bf6e4291cade5f79c2c3d7a738b148344597e61a469bf17d7d163",
	}
	check := func(id string, entries []layers.Entry, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := layers.Layer{Entries: entries}.Write(t.Context(), io.Discard,
			layers.Options{Compression: layers.Uncompressed})
		if err != nil {
			t.Fatal(err)
		}
		if b.DiffID != golden[id] {
			t.Errorf("%s: %s, want %s", id, b.DiffID, golden[id])
		}
	}
	entries, err := PogrebTop(t.Context(), t.TempDir(), samples())
	check(PogrebID, entries, err)
	entries, err = JSONTop(t.Context(), t.TempDir(), samples())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range entries {
		known[e.Name] = true
	}
	for _, p := range samples() {
		c, err := p.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		more, err := JSONEntries(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range more {
			if !known[e.Name] {
				known[e.Name] = true
				entries = append(entries, e)
			}
		}
	}
	check(JSONID, entries, nil)
}
