package opmcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// catalogOf returns a package a with one channel and one bundle of these names, and additional documents.
func catalogOf(channel, bundle, more string) string {
	return fmt.Sprintf(`{"schema":"olm.package","name":"a","defaultChannel":%[1]q}
{"schema":"olm.channel","package":"a","name":%[1]q,"entries":[{"name":%[2]q}]}
{"schema":"olm.bundle","package":"a","name":%[2]q,"image":"x.test/a:v1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
%[3]s`, channel, bundle, more)
}

func TestWhatOPMCannotHold(t *testing.T) {
	twice := `{"schema":"olm.channel","package":"a","name":"x%[1]sy","entries":[{"name":"z"}]}
{"schema":"olm.bundle","package":"a","name":"z","image":"x.test/a:v1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
`
	for name, c := range map[string]struct {
		text         string
		json, pogreb string // part of the error; empty for none
	}{
		"usual":                   {catalogOf("stable", "a.v1", ""), "", ""},
		"slash in a channel":      {catalogOf("../../x", "a.v1", ""), "cannot be", ""},
		"name of a file too long": {catalogOf("stable", strings.Repeat("b", 250), ""), "cannot be", ""},
		"two entries with one file": {catalogOf("x", "y_z", fmt.Sprintf(twice, "_")), "cannot tell two entries apart",
			""},
		"two entries with one key": {catalogOf("x", "y/z", fmt.Sprintf(twice, "/")), "cannot be",
			"cannot tell two entries apart"},
		"schema that leads elsewhere": {catalogOf("s", "a.v1", `{"schema":"../../etc","package":"a"}`), "allow letters",
			"allow letters"},
		"schema with a slash": {catalogOf("s", "a.v1", `{"schema":"a/b","package":"a"}`), "allow letters",
			"allow letters"},
		"number too large": {catalogOf("s", "a.v1", `{"schema":"n","package":"a","n":1e999}`),
			"too large for opm", "too large for opm"},
		"no default channel": {`{"schema":"olm.package","name":"a","defaultChannel":"gone"}`,
			"default channel", "default channel"},
		"not a catalog": {`{"schema":`, "configs/a/catalog.yaml", "configs/a/catalog.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			all := []Package{textPackage("a", c.text)}
			tmp := t.TempDir()
			_, err := JSONTop(t.Context(), tmp, all)
			wantError(t, "json", err, c.json)
			leftOver(t, tmp)
			tmp = t.TempDir()
			es, err := PogrebTop(t.Context(), tmp, all)
			wantError(t, "pogreb", err, c.pogreb)
			if err == nil {
				unpack(t, es)
			}
			leftOver(t, tmp)
		})
	}
}

func wantError(t *testing.T, what string, err error, part string) {
	t.Helper()
	if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
		t.Errorf("%s: error %v, want %q", what, err, part)
	}
}

func TestCancelledWorkLeavesNothing(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	tmp := t.TempDir()
	if _, err := JSONTop(ctx, tmp, samples()); !errors.Is(err, why) {
		t.Errorf("json: %v", err)
	}
	if _, err := PogrebTop(ctx, tmp, samples()); !errors.Is(err, why) {
		t.Errorf("pogreb: %v", err)
	}
	leftOver(t, tmp)
}

// TestCheckFindsDamage changes each part of valid caches.
func TestCheckFindsDamage(t *testing.T) {
	db := filepath.Join(Dir, opmformat.PogrebDir, "db")
	for name, c := range map[string]struct {
		make  func(testing.TB, []Package) string
		file  string
		at    int // negative: from the end
		error bool
	}{
		"pogreb: catalog":          {pogrebOf, "configs/a/catalog.yaml", -4, false},
		"pogreb: digest":           {pogrebOf, filepath.Join(Dir, opmformat.PogrebDir, "digest"), 0, false},
		"pogreb: value":            {pogrebOf, filepath.Join(db, "00000-1.psg"), -100, true},
		"pogreb: header":           {pogrebOf, filepath.Join(db, "00000-1.psg"), 0, true},
		"pogreb: hash":             {pogrebOf, filepath.Join(db, "main.pix"), headerSize, true},
		"pogreb: offset":           {pogrebOf, filepath.Join(db, "main.pix"), headerSize + 12, true},
		"pogreb: next bucket":      {pogrebOf, filepath.Join(db, "main.pix"), headerSize + bucketLen*slotSize, true},
		"pogreb: seed":             {pogrebOf, filepath.Join(db, "db.pmt"), -2, true},
		"pogreb: counts":           {pogrebOf, filepath.Join(db, "index.pmt"), -3, true},
		"pogreb: counts of fields": {pogrebOf, filepath.Join(db, "index.pmt"), headerSize, true},
		"json: catalog":            {jsonOf, "configs/a/catalog.yaml", -4, false},
		"json: entry":              {jsonOf, filepath.Join(Dir, "cache/a_stable_a.v1.0.0.json"), 5, false},
		"json: index":              {jsonOf, filepath.Join(Dir, "cache/packages.json"), 5, false},
		"json: digest":             {jsonOf, filepath.Join(Dir, "digest"), 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := c.make(t, samples())
			file := filepath.Join(root, c.file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at := c.at
			if at < 0 {
				at += len(text)
			}
			text[at] ^= 1
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := check(t, root)
			if (err != nil) != c.error || err == nil && r.Valid() {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	t.Run("pogreb: entries that overlap", func(t *testing.T) {
		// The value of each entry overlaps the following entries.
		d, err := newDatabase(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var log []byte
		for i := range 20 {
			head := append([]byte{1, 0}, byte(len(log)), byte(len(log)>>8), 0, 0, byte('a'+i))
			log = append(head, log...)
		}
		for i := range 20 {
			d.records = append(d.records,
				record{string(byte('a' + 19 - i)), uint32(headerSize + i*7), uint32(7 * (19 - i))})
		}
		if _, err := d.s.Write(log); err != nil {
			t.Fatal(err)
		}
		files := d.files()
		for i := range files {
			files[i].Name, files[i].Mode = "db/"+files[i].Name, 0o600
		}
		db, err := openDatabase(os.DirFS(unpack(t, files)))
		if err == nil || !strings.Contains(err.Error(), "overlaps") {
			t.Errorf("got %+v, %v", db, err)
		}
	})
	t.Run("json: mode", func(t *testing.T) {
		root := jsonOf(t, samples())
		if err := os.Chmod(filepath.Join(root, "configs/a"), 0o775); err != nil {
			t.Fatal(err)
		}
		if r, err := check(t, root); err != nil || r.Valid() {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, err := Check(t.Context(), os.DirFS(t.TempDir()), os.DirFS(t.TempDir())); !errors.Is(err, errNone) {
			t.Errorf("got %v", err)
		}
	})
}
