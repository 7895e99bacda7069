package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
	"github.com/operator-bindery/bindery/internal/testing/extent"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// magic is the start of every SQLite database.
const magic = "SQLite format 3\x00"

const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "

func TestForeignObjectsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, statement, want string
	}{
		{"view", "CREATE VIEW x AS " + endless + "i FROM n", `view "x"`},
		{"view for a table",
			"DROP TABLE package; CREATE VIEW package AS " + endless + "i name, i default_channel FROM n",
			`view "package"`},
		{"trigger", "CREATE TRIGGER x AFTER INSERT ON operatorbundle BEGIN DELETE FROM package; END", `trigger "x"`},
		{"virtual table", "CREATE VIRTUAL TABLE x USING fts5(a)", `virtual table "x"`},
		{"generated column", "ALTER TABLE operatorbundle ADD COLUMN x TEXT AS (upper(name))", "generated column"},
		{"expression index", "CREATE INDEX x ON operatorbundle(length(csv))", `expression index "x"`},
		{"partial index", "CREATE INDEX x ON operatorbundle(name) WHERE length(csv) > 3", `expression index "x"`},
		{"no rowid",
			"DROP TABLE deprecated; CREATE TABLE deprecated(operatorbundle_name TEXT PRIMARY KEY) WITHOUT ROWID",
			"WITHOUT ROWID"},
		{"table missing", "DROP TABLE channel_entry", `table "channel_entry" is missing`},
		{"column missing", "ALTER TABLE channel_entry DROP COLUMN depth", `no column "depth"`},
		{"version 99", "UPDATE schema_migrations SET version = 99", "schema version"},
		{"version -1", "UPDATE schema_migrations SET version = -1", "schema version"},
		{"version text", "UPDATE schema_migrations SET version = 'x'", "schema version"},
		{"two versions", "INSERT INTO schema_migrations(version) VALUES (13)", "several schema versions"},
	} {
		// Extra objects are refused before any query: some of these would run until the time limit, which is a
		// different error.
		_, _, err := read(t, altered(t, "small", c.statement), sqlite.Options{})
		if !errors.Is(err, sqlite.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestInvalidRows(t *testing.T) {
	t.Parallel()
	const bundle = "etcdoperator.v0.9.2"
	for _, c := range []struct {
		name, statement, want string
	}{
		{"bundle name not UTF-8",
			"UPDATE operatorbundle SET name = CAST(x'ff41' AS TEXT) WHERE name = '" + bundle + "'", "not UTF-8"},
		{"NUL in a name", "UPDATE operatorbundle SET name = 'a' || char(0) || 'b' WHERE name = '" + bundle + "'",
			"NUL"},
		{"csv not JSON", "UPDATE operatorbundle SET csv = 'hello' WHERE name = '" + bundle + "'", "column csv"},
		{"csv not UTF-8",
			"UPDATE operatorbundle SET csv = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE name = '" + bundle + "'",
			"column csv"},
		{"bundle not JSON", "UPDATE operatorbundle SET bundle = '{' WHERE name = '" + bundle + "'", "column bundle"},
		{"bundle not objects", "UPDATE operatorbundle SET bundle = '[]' WHERE name = '" + bundle + "'",
			"column bundle"},
		{"zeros after the manifests",
			"UPDATE operatorbundle SET bundle = CAST(bundle AS BLOB) || zeroblob(9) WHERE name = '" + bundle + "'",
			"column bundle"},
		{"version", "UPDATE operatorbundle SET version = 'latest' WHERE name = '" + bundle + "'",
			`parse version "latest"`},
		{"property", "UPDATE properties SET value = '{' WHERE operatorbundle_name = '" + bundle + "'", bundle},
		{"dependency", "UPDATE dependencies SET value = 'x'", "silicom-sts-operator.v0.0.1"},
		{"skip range", "UPDATE operatorbundle SET skiprange = 'x' WHERE name = '" + bundle + "'", "invalid skipRange"},
		{"default channel", "UPDATE package SET default_channel = 'x' WHERE name = 'etcd'", `default channel`},
		{"cycle", "UPDATE channel_entry SET replaces = 13 WHERE entry_id = 15", "etcd"},
		{"entry that replaces itself", "UPDATE channel_entry SET replaces = 15 WHERE entry_id = 15", "etcd"},
		{"depth -1", "UPDATE channel_entry SET depth = -1 WHERE entry_id = 14", "etcd"},
		{"entry id text", "UPDATE channel_entry SET replaces = 'x' WHERE entry_id = 14", "not an integer"},
		{"channel gone", "DELETE FROM channel WHERE name = 'alpha' AND package_name = 'etcd'",
			`unknown channel "alpha"`},
		{"name twice",
			"CREATE TABLE o AS SELECT * FROM operatorbundle; DROP TABLE operatorbundle; ALTER TABLE o RENAME TO " +
				"operatorbundle; INSERT INTO operatorbundle SELECT * FROM operatorbundle LIMIT 1", "appears twice"},
	} {
		_, _, err := read(t, altered(t, "small", "PRAGMA foreign_keys=0", c.statement), sqlite.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			continue
		}
		if len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", c.name, len(err.Error()))
		}
		var invalid *declcfg.ValidationError
		if !errors.Is(err, sqlite.ErrInvalid) && !errors.As(err, &invalid) {
			t.Errorf("%s: the error is of no kind: %v", c.name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		statement string
		limits    sqlite.Limits
	}{
		{"value", "UPDATE operatorbundle SET bundle = zeroblob(100000000) WHERE name = 'etcdoperator.v0.9.2'",
			sqlite.Limits{}},
		{"value, set", "SELECT 1", sqlite.Limits{ValueBytes: 10_000}},
		{"rows", "SELECT 1", sqlite.Limits{Rows: 20}},
		{"text", "UPDATE properties SET value = hex(zeroblob(100000)) || rowid", sqlite.Limits{TextBytes: 1 << 20}},
		{"file", "SELECT 1", sqlite.Limits{FileBytes: 1 << 16}},
		{"time", "SELECT 1", sqlite.Limits{Time: time.Nanosecond}},
	} {
		if _, _, err := read(t, altered(t, "small", c.statement), sqlite.Options{Limits: c.limits}); !errors.Is(err,
			sqlite.ErrLimit) {
			t.Errorf("%s: got %v, want %v", c.name, err, sqlite.ErrLimit)
		}
	}
}

// Very many invalid rows are refused with a readable message.
func TestManyBrokenRows(t *testing.T) {
	t.Parallel()
	const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) "
	for name, statement := range map[string]string{
		"channels": "INSERT INTO channel(name, package_name, head_operatorbundle_name) " + many +
			"SELECT 'bad-' || i, 'etcd', 'nosuch' FROM n",
		"entries": "INSERT INTO channel_entry(channel_name, package_name, operatorbundle_name, depth) " + many +
			"SELECT 'bad-' || i, 'etcd', 'etcdoperator.v0.9.2', 0 FROM n",
		"packages": "INSERT INTO package(name, default_channel) " + many +
			"SELECT 'p' || i, 'c' FROM n; INSERT INTO channel(name, package_name) SELECT 'c', name FROM package",
	} {
		_, _, err := read(t, altered(t, "small", "PRAGMA foreign_keys=0", statement), sqlite.Options{})
		if err == nil || len(err.Error()) > 100<<10 || !strings.Contains(err.Error(), " more ") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// muchWork is how many times the processor time for an intact database reading a damaged one may take: its pages can
// form cycles, which a reader must detect.
const muchWork = 100

// intactWork returns the processor time of reading the database small.
func intactWork(t *testing.T) time.Duration {
	t.Helper()
	path := recorded.Part(t).Database(t, "small")
	return cputime.Of(func() {
		if _, err := write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{Jobs: 1}); err != nil {
			t.Fatal(err)
		}
	})
}

// tryDamaged reads a damaged database: it must be refused or give the right answer, without much more work than the
// intact one.
func tryDamaged(t *testing.T, what, path, want string, intact time.Duration) (refused bool) {
	t.Helper()
	var got string
	var err error
	if work := cputime.Once(func() {
		got, err = write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{Jobs: 1})
	}); work > muchWork*intact {
		t.Errorf("%s: took %v, the intact one takes %v", what, work, intact)
	}
	if err == nil && got != want {
		t.Errorf("%s: the answer is wrong, and there is no error\n%s", what, difference(got, want))
	}
	return err != nil
}

func TestEveryPageZeroed(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 180 databases")
	}
	t.Parallel()
	part := recorded.Part(t)
	data, want := part.File(t, "db/small.db"), string(part.File(t, "golden/small/render.json"))
	const page = 4096
	intact := intactWork(t)
	path := filepath.Join(t.TempDir(), "index.db")
	refused := 0
	for i := 0; i < len(data)/page; i++ {
		damaged := append([]byte(nil), data...)
		clear(damaged[i*page : (i+1)*page])
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if tryDamaged(t, fmt.Sprintf("page %d", i+1), path, want, intact) {
			refused++
		}
	}
	if refused < len(data)/page/2 {
		t.Errorf("only %d of %d pages are missed", refused, len(data)/page)
	}
}

func TestHeaderMutated(t *testing.T) {
	t.Parallel()
	part := recorded.Part(t)
	data, want := part.File(t, "db/small.db"), string(part.File(t, "golden/small/render.json"))
	intact := intactWork(t)
	path := filepath.Join(t.TempDir(), "index.db")
	n := 900 / extent.Stride(3)
	if testing.Short() {
		n = 50
	}
	random := rand.New(rand.NewSource(1))
	for range n {
		damaged := append([]byte(nil), data...)
		for range 1 + random.Intn(4) {
			damaged[random.Intn(100)] = byte(random.Intn(256))
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		tryDamaged(t, fmt.Sprintf("header % x", damaged[:100]), path, want, intact)
	}
}

func TestTruncated(t *testing.T) {
	data := recorded.Part(t).File(t, "db/small.db")
	path := filepath.Join(t.TempDir(), "index.db")
	for _, n := range []int{1, 15, 16, 50, 99, 100, 512, 4096, 8192, len(data) - 20000, len(data) - 4096,
		len(data) - 1} {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := sqlite.ErrDamaged
		if n < len(magic) {
			want = sqlite.ErrNotDatabase
		}
		if _, _, err := read(t, path, sqlite.Options{}); !errors.Is(err, want) {
			t.Errorf("the first %d bytes: got %v, want %v", n, err, want)
		}
	}
	if err := os.WriteFile(path, append(data, make([]byte, 4096)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t, path, sqlite.Options{}); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("a page too many: got %v", err)
	}
}

// TestCorpus reads the malformed databases of the SQLite library's own tests: none may be accepted as an index database
// or stop the program.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("reads thousands of databases")
	}
	t.Parallel()
	dir, err := output("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite")
	if err != nil {
		t.Skipf("the module of the library is not there: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "testdata", "tcl", "fuzzdata*.db"))
	if err != nil || len(files) == 0 {
		t.Skipf("the library's malformed databases are not there: %v", err)
	}
	intact := intactWork(t)
	path := filepath.Join(t.TempDir(), "index.db")
	n := 0
	for _, file := range files {
		corpus, err := sql.Open("sqlite", "file:"+file+"?mode=ro&immutable=1")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := corpus.Query("SELECT dbcontent FROM db")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for rows.Next() {
			var data []byte
			if err := rows.Scan(&data); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			n++
			if n%extent.Stride(3) != 0 {
				continue
			}
			work := cputime.Once(func() {
				db, err := sqlite.Open(context.Background(), path, sqlite.Options{Jobs: 1})
				if err != nil {
					return
				}
				if err := db.Load(context.Background()); err == nil {
					t.Errorf("%s, database %d: no error", file, n)
				}
				db.Close()
			})
			if work > muchWork*intact {
				t.Errorf("%s, database %d: took %v, an intact index database takes %v", file, n, work, intact)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close(), corpus.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d databases", n)
}

func output(name string, args ...string) (string, error) {
	out, err := osexec.Command(name, args...).Output()
	return strings.TrimSpace(string(out)), err
}
