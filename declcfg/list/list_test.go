package list

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

func loadRef(t *testing.T, ref string) (*Listing, error) {
	t.Helper()
	blobs, err := render.Options{Compat: sqlite.CompatOPM}.Render(context.Background(), ref)
	if err != nil {
		return nil, err
	}
	return Load(blobs)
}

func text(t *testing.T, table Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, func(s string) string { return s }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readMaybe reads a recorded answer, which may be compressed; ok is false where there is none.
func readMaybe(t *testing.T, file string) (content string, ok bool) {
	t.Helper()
	if data, err := os.ReadFile(file); err == nil {
		return string(data), true
	}
	f, err := os.Open(file + ".zst")
	if err != nil {
		return "", false
	}
	defer f.Close()
	r, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

// compare checks the three tables of a catalog against those in a directory.
func compare(t *testing.T, l *Listing, dir string) (compared int) {
	t.Helper()
	check := func(name string, table Table, err error) {
		t.Helper()
		want, ok := readMaybe(t, filepath.Join(dir, name))
		if !ok {
			return
		}
		compared++
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if got := text(t, table); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	check("list-packages.txt", PackageTable(l.Packages()), nil)
	channels, err := l.Channels("")
	check("list-channels.txt", ChannelTable(channels), err)
	bundles, err := l.Bundles("")
	check("list-bundles.txt", bundles.OPMTable(), err)
	return compared
}

func TestSmallDatabase(t *testing.T) {
	l, err := loadRef(t, "../../testdata/db/small.db")
	if err != nil {
		t.Fatal(err)
	}
	if n := compare(t, l, "testdata/small"); n != 3 {
		t.Errorf("%d answers compared", n)
	}
	if _, err := l.Bundles("nosuch"); err == nil || err.Error() != `package "nosuch" not found` {
		t.Errorf("an unknown package: %v", err)
	}
	rows, err := l.Channels("etcd")
	if err != nil || len(rows) != 3 {
		t.Errorf("channels of one package: %v (%v)", rows, err)
	}
}

// Every recorded database and catalog is listed as by opm, or refused if opm refused it.
func TestRecordedAnswers(t *testing.T) {
	oracle := string(recorded.All(t))
	dirs, err := filepath.Glob(oracle + "/golden/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	compared := 0
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			want, ok := readMaybe(t, filepath.Join(dir, "list-packages.txt"))
			db, found := readMaybe(t, filepath.Join(oracle, "db", name+".db"))
			if !found {
				return // recorded from another kind of source
			}
			path := filepath.Join(t.TempDir(), name+".db")
			if err := os.WriteFile(path, []byte(db), 0o444); err != nil {
				t.Fatal(err)
			}
			l, err := loadRef(t, path)
			if !ok || want == "" {
				// opm damages databases of old schemas by migrating them in place; here they are only read.
				old := strings.HasPrefix(name, "schema-") || strings.HasPrefix(name, "down-")
				if err == nil && !old {
					t.Errorf("opm refused it, and here it lists as\n%s", text(t, PackageTable(l.Packages())))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compared += compare(t, l, dir)
		})
	}
	t.Logf("%d answers compared", compared)
	l, err := loadRef(t, oracle+"/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, l, oracle+"/golden-fbc/mini")
}

func TestInvalidCatalogCannotBeListed(t *testing.T) {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "p", DefaultChannel: "c"}}}
	_, err := Load(c.Blobs())
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
}

func TestEmptyCatalogIsAnEmptyList(t *testing.T) {
	l, err := Load((&declcfg.Catalog{}).Blobs())
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := l.Bundles("")
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []any{l.Packages(), bundles} {
		if got, err := json.Marshal(rows); err != nil || string(got) != "[]" {
			t.Errorf("got %s (%v)", got, err)
		}
	}
	if got := text(t, PackageTable(l.Packages())); got != "NAME  DISPLAY NAME  DEFAULT CHANNEL\n" {
		t.Errorf("got %q", got)
	}
}

func TestDisplayNameOfMetadata(t *testing.T) {
	for _, p := range []declcfg.Property{
		{Type: declcfg.PropertyCSVMetadata, Value: json.RawMessage(`{"displayName":"The Name"}`)},
		declcfg.NewBundleObject([]byte(`{"kind":"ClusterServiceVersion","spec":{"displayName":"The Name"}}`)),
	} {
		if got := displayName(&declcfg.Bundle{Properties: []declcfg.Property{p}}); got != "The Name" {
			t.Errorf("%s: got %q", p.Type, got)
		}
	}
}

// What a ClusterServiceVersion does not say, the metadata beside it may.
func TestDisplayNameOfEither(t *testing.T) {
	b := declcfg.Bundle{Properties: []declcfg.Property{
		declcfg.NewBundleObject([]byte(`{"kind":"ClusterServiceVersion","spec":{"displayName":["a","b"]}}`)),
		{Type: declcfg.PropertyCSVMetadata, Value: json.RawMessage(`{"displayName":"The Name"}`)},
	}}
	if got := displayName(&b); got != "The Name" {
		t.Errorf("got %q", got)
	}
}
