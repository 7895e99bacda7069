package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

func TestInputIsNeverWrittenTo(t *testing.T) {
	part := recorded.Part(t)
	for _, name := range part.Databases(t) {
		path := part.Database(t, name)
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o444); err != nil {
			t.Fatal(err)
		}
		before := state(t, filepath.Dir(path))
		_, _, err := read(t, path, sqlite.Options{})
		if _, ok := broken[name]; !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sameState(t, before, state(t, filepath.Dir(path)))
	}
}

// No character of a path becomes a parameter of the library's URI.
func TestPathsAreNotParsed(t *testing.T) {
	want := string(recorded.Part(t).File(t, "golden/small/render.json"))
	data := recorded.Part(t).File(t, "db/small.db")
	for _, name := range []string{"a?mode=rwc&x=.db", "a#b.db", "%2e.db", "a b%20.db", "a&b=c;d.db", "é☃.db",
		":memory:", "file:x.db"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := state(t, dir)
		got, err := write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got != want {
			t.Errorf("%s: another database was read", name)
		}
		sameState(t, before, state(t, dir))
	}
}

const addChannel = `INSERT INTO channel VALUES ('added', 'etcd', 'etcdoperator.v0.9.4');
	INSERT INTO channel_entry VALUES (900, 'added', 'etcd', 'etcdoperator.v0.9.4', NULL, 0)`

func hasChannel(c *declcfg.Catalog, name string) bool {
	for _, ch := range c.Channels {
		if ch.Name == name {
			return true
		}
	}
	return false
}

func TestWriteAheadLogIsApplied(t *testing.T) {
	path := recorded.Part(t).Database(t, "small")
	db := writer(t, path, "")
	exec(t, db, "PRAGMA journal_mode=wal", "PRAGMA wal_autocheckpoint=0", addChannel)
	if stat, err := os.Stat(path + "-wal"); err != nil || stat.Size() == 0 {
		t.Fatalf("there is no log to be tested with: %v", err)
	}
	before := state(t, filepath.Dir(path))
	c, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasChannel(c, "added") {
		t.Error("what is in the log is not in the catalog")
	}
	sameState(t, before, state(t, filepath.Dir(path)))
}

// A database in write-ahead-log mode has no log after its last writer has closed it.
func TestWriteAheadLogModeWithoutLog(t *testing.T) {
	path := altered(t, "small", "PRAGMA journal_mode=wal", addChannel)
	before := state(t, filepath.Dir(path))
	c, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasChannel(c, "added") {
		t.Error("the last state was not read")
	}
	sameState(t, before, state(t, filepath.Dir(path)))
}

// interrupted returns a database with the journal of a transaction that was interrupted after writing to the file.
func interrupted(t *testing.T) string {
	t.Helper()
	path := recorded.Part(t).Database(t, "small")
	db := writer(t, path, "_pragma=cache_size(5)&_pragma=cache_spill(1)&_pragma=synchronous(0)")
	exec(t, db, "BEGIN", addChannel, "UPDATE operatorbundle SET bundle = bundle || bundle, csv = csv || csv")
	dir := t.TempDir()
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "index.db")+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, db, "ROLLBACK")
	return filepath.Join(dir, "index.db")
}

func TestInterruptedTransactionIsRolledBack(t *testing.T) {
	path := interrupted(t)
	before := state(t, filepath.Dir(path))
	got, err := write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(got, string(recorded.Part(t).File(t, "golden/small/render.json"))); d != "" {
		t.Error(d)
	}
	sameState(t, before, state(t, filepath.Dir(path)))
}

// SQLite would delete the file that a journal names as its super-journal.
func TestSuperJournalIsRefused(t *testing.T) {
	path := interrupted(t)
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("alive"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path+"-journal", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sum uint32
	for _, c := range []byte(canary) {
		sum += uint32(c)
	}
	n := uint32(len(canary))
	record := append([]byte{0x40, 0, 0, 0}, canary...)
	for _, v := range []uint32{n, sum} {
		record = append(record, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	record = append(record, 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7)
	if _, err := f.Write(record); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, _, err := read(t, path, sqlite.Options{}); !errors.Is(err, sqlite.ErrUnsupported) {
		t.Errorf("got %v, want %v", err, sqlite.ErrUnsupported)
	}
	if data, err := os.ReadFile(canary); err != nil || string(data) != "alive" {
		t.Errorf("the file that the journal names: %q, %v", data, err)
	}
}

func TestLocks(t *testing.T) {
	want := string(recorded.Part(t).File(t, "golden/small/render.json"))
	for _, c := range []struct {
		lock string
		err  error
	}{
		{"BEGIN", nil},
		{"BEGIN IMMEDIATE", nil}, // the writer has not written yet and does not exclude readers
		{"BEGIN EXCLUSIVE", sqlite.ErrLocked},
	} {
		path := recorded.Part(t).Database(t, "small")
		db := writer(t, path, "")
		exec(t, db, c.lock)
		before := state(t, filepath.Dir(path))
		// The writer holds its lock until the reader has timed out.
		got, err := write(t, path, declcfg.FormatJSON, edit.LevelNone, sqlite.Options{})
		if !errors.Is(err, c.err) || err == nil && got != want {
			t.Errorf("%s: got %v, want %v", c.lock, err, c.err)
		}
		sameState(t, before, state(t, filepath.Dir(path)))
		exec(t, db, "ROLLBACK")
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(recorded.Part(t).Database(t, "small"), link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t, link, sqlite.Options{}); err != nil {
		t.Errorf("a link to a database: %v", err)
	}
	if _, _, err := read(t, dir, sqlite.Options{}); !errors.Is(err, sqlite.ErrNotDatabase) {
		t.Errorf("a directory: %v", err)
	}
	if _, _, err := read(t, filepath.Join(dir, "absent"), sqlite.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	sparse := recorded.Part(t).Database(t, "small")
	if err := os.Truncate(sparse, 2<<30); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t, sparse, sqlite.Options{}); !errors.Is(err, sqlite.ErrLimit) {
		t.Errorf("a file of 2 GiB: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	path := recorded.Part(t).Database(t, "medium")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	for _, err := range db.Blobs(ctx) {
		if n++; n == 3 {
			cancel()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			return
		}
	}
	t.Error("the iteration ended without an error")
}

func TestIterationCanBeLeftAndRepeated(t *testing.T) {
	db, err := sqlite.Open(context.Background(), recorded.Part(t).Database(t, "small"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range db.Blobs(context.Background()) {
		break
	}
	a, err := declcfg.Collect(db.Blobs(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := declcfg.Collect(db.Blobs(context.Background()))
	if err != nil || len(a.Bundles) != 12 || len(b.Bundles) != 12 {
		t.Errorf("got %d and %d bundles, %v", len(a.Bundles), len(b.Bundles), err)
	}
}

// After an iteration ends at any blob, the database can be closed immediately: nothing reads it any more.
func TestCloseAfterLeaving(t *testing.T) {
	path := recorded.Part(t).Database(t, "small")
	for leave := 1; ; leave++ {
		for range 20 {
			db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			before := runtime.NumGoroutine()
			for _, err := range db.Blobs(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen == leave {
					break
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			// The database library's goroutines end by themselves.
			for end := time.Now().Add(time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
				runtime.Gosched()
			}
			if n := runtime.NumGoroutine(); n > before {
				t.Fatalf("left at blob %d: %d goroutines, before it were %d", leave, n, before)
			}
			if seen < leave {
				return
			}
		}
	}
}
