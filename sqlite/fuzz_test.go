package sqlite_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// checkFuzzed reads an arbitrary database: the result is an error or a valid catalog, and the file is unchanged.
func checkFuzzed(t *testing.T, path string) {
	t.Helper()
	before := state(t, filepath.Dir(path))
	limits := sqlite.Limits{Time: 5 * time.Second, ValueBytes: 1 << 20, TextBytes: 1 << 20}
	for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
		c, _, err := read(t, path, sqlite.Options{Jobs: 1, Compat: compat, Limits: limits})
		if err != nil {
			continue
		}
		valid := c.Validate
		if compat == sqlite.CompatOPM {
			valid = c.ValidateAnyImages // opm does not parse them
		}
		if err := valid(); err != nil {
			t.Errorf("an invalid catalog was read: %v", err)
		}
	}
	sameState(t, before, state(t, filepath.Dir(path)))
}

// FuzzPages changes bytes of a database: every four bytes of patch are an offset and the change of the byte there.
// (Whole databases as input would be too large for the fuzzer.)
func FuzzPages(f *testing.F) {
	part := recorded.Part(f)
	var seeds [][]byte
	for _, name := range []string{"schema-empty-13", "schema-3", "deprec-v1.2.0"} {
		seeds = append(seeds, part.File(f, "db/"+name+".db"))
		f.Add(byte(len(seeds)), []byte{0, 0, 18, 3, 0, 16, 0, 255})
	}
	// a related image that is not a pull spec
	f.Add(byte(2), []byte("[M\xdf\xf7%\xf6\xde\x00\x00\x12\x03\x00\x10]]]]]]]\x00\xff"))
	f.Fuzz(func(t *testing.T, seed byte, patch []byte) {
		data := append([]byte(nil), seeds[int(seed)%len(seeds)]...)
		for ; len(patch) >= 4; patch = patch[4:] {
			at := binary.BigEndian.Uint32(patch) >> 8
			data[int(at)%len(data)] ^= patch[3]
		}
		path := filepath.Join(t.TempDir(), "index.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		checkFuzzed(t, path)
	})
}

// FuzzRows fills the columns of a small database with arbitrary values.
func FuzzRows(f *testing.F) {
	f.Add("a.v1.0.0", "1.0.0", ">=0.1.0", "stable", int64(0), int64(0), "olm.constraint", `{"cel":{}}`,
		`{"kind":"ClusterServiceVersion","spec":{"version":"1.0.0"}}`, "x.example/y:1")
	f.Add("a.v1.0.0", "", "", "", int64(1), int64(1), "olm.gvk", `{}`,
		`{"kind":"ClusterServiceVersion","metadata":{"annotations":{"olm.properties":"[]"}}}`, "")
	empty := recorded.Part(f).File(f, "db/schema-empty-13.db")
	f.Fuzz(func(t *testing.T, name, version, skipRange, channel string, replaces, depth int64,
		typ, value, manifest, image string) {
		path := filepath.Join(t.TempDir(), "index.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		db := writer(t, path, "_pragma=synchronous(0)&_pragma=journal_mode(memory)")
		for _, s := range []struct {
			query string
			args  []any
		}{
			{"INSERT INTO operatorbundle(name, version, skiprange, bundlepath, csv, bundle) VALUES (?, ?, ?, ?, ?, ?)",
				[]any{name, version, skipRange, image, manifest, manifest + "\n" + value}},
			{"INSERT INTO package VALUES ('p', ?)", []any{channel}},
			{"INSERT INTO channel VALUES (?, 'p', ?)", []any{channel, name}},
			{"INSERT INTO channel_entry VALUES (1, ?, 'p', ?, ?, ?)", []any{channel, name, replaces, depth}},
			{"INSERT INTO channel_entry VALUES (2, ?, 'p', ?, 1, ?)", []any{channel, name + "x", depth + 1}},
			{"INSERT INTO properties(type, value, operatorbundle_name) VALUES (?, ?, ?)", []any{typ, value, name}},
			{"INSERT INTO dependencies(type, value, operatorbundle_name) VALUES (?, ?, ?)", []any{typ, value, name}},
			{"INSERT INTO related_image VALUES (?, ?)", []any{image, name}},
		} {
			if _, err := db.Exec(s.query, s.args...); err != nil {
				t.Skip(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		checkFuzzed(t, path)
	})
}
