//go:build linux

package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// TestMain runs a job instead of the tests if the environment says so.
func TestMain(m *testing.M) {
	if job := os.Getenv("SQLITE_TEST_JOB"); job != "" {
		if err := runJob(job, os.Getenv("SQLITE_TEST_FILE")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runJob runs the job of the child process.
func runJob(job, path string) error {
	ctx := context.Background()
	name, argument, _ := strings.Cut(job, " ")
	switch name {
	case "create": // a database of as many packages
		_, err := sqlite.Create(ctx, path, manyPackages(argument).Blobs(), sqlite.WriteOptions{})
		return err
	case "create-limited": // on a file system with as much room
		limit, err := strconv.ParseUint(argument, 10, 64)
		if err != nil {
			return err
		}
		if err := limitFileSize(limit); err != nil {
			return err
		}
		_, err = sqlite.Create(ctx, path, manyPackages("60").Blobs(), sqlite.WriteOptions{})
		return err
	case "add": // a package of that name
		_, err := sqlite.Replace(ctx, path, sqlite.Options{}, sqlite.WriteOptions{Wait: time.Minute}, adding(argument))
		return err
	case "hold": // SQLite's lock, until standard input ends
		db, err := openForWriting(path)
		if err != nil {
			return err
		}
		defer db.Close()
		if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		fmt.Println("held")
		_, err = bufio.NewReader(os.Stdin).ReadString('\n')
		return errors.Join(db.Close(), ignoreEOF(err))
	case "lock": // take SQLite's lock, if it is free
		db, err := openForWriting(path)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec("BEGIN IMMEDIATE")
		return err
	}
	return fmt.Errorf("no job %q", job)
}

func manyPackages(n string) *declcfg.Catalog {
	count, err := strconv.Atoi(n)
	if err != nil {
		panic(err)
	}
	c := &declcfg.Catalog{}
	for i := range count {
		p := pkg(fmt.Sprintf("p%04d", i),
			channel("a", fmt.Sprintf("p%04d.v1", i), fmt.Sprintf("p%04d.v2 p%04d.v1", i, i)))
		for j := range p.Bundles {
			p.Bundles[j].Properties = append(p.Bundles[j].Properties,
				declcfg.NewBundleObject([]byte(`{"kind":"ConfigMap","data":"`+strings.Repeat("x", 3000)+`"}`)))
		}
		c.Append(p)
	}
	return c
}

// adding returns a change that adds a package to a database.
func adding(name string) func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
	return func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
		c, err := declcfg.Collect(db.Blobs(ctx))
		if err != nil {
			return nil, err
		}
		c.Append(pkg(name, channel("a", name+".v1")))
		return c.Blobs(), nil
	}
}

func job(name, path string) *osexec.Cmd {
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_TEST_JOB="+name, "SQLITE_TEST_FILE="+path)
	return cmd
}

func fileBytes(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// After a writer was killed, the file is the old or the new one, and the next writer removes leftovers.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.db")
	newer, _ := create(t, manyPackages("300").Blobs(), sqlite.WriteOptions{})
	older, _ := create(t, manyPackages("1").Blobs(), sqlite.WriteOptions{})
	want, old := fileBytes(t, newer), fileBytes(t, older)
	start := time.Now()
	if out, err := job("create 300", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !bytes.Equal(fileBytes(t, path), want) {
		t.Fatal("another process made other bytes of the same catalog")
	}
	took := time.Since(start)
	const rounds = 30
	var killed, finished, left int
	for i := range rounds {
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := job("create 300", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(took*time.Duration(i)/rounds, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err != nil {
			killed++
		} else {
			finished++
		}
		if got := fileBytes(t, path); !bytes.Equal(got, want) && (err == nil || !bytes.Equal(got, old)) {
			t.Errorf("killed after %d/%d: the file is neither the old one nor the new one", i, rounds)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
			left++
		}
	}
	if killed == 0 || left == 0 {
		t.Errorf("%d were killed, %d finished, %d left something", killed, finished, left)
	}
	if _, err := sqlite.Create(context.Background(), path, simple(nil).Blobs(), sqlite.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	nothingIn(t, dir, "index.db")
	t.Logf("%d killed, %d finished, %d left something for the next one to clean up", killed, finished, left)
}

// If the disk is full at any point, the old file stays and no temporary file is left.
func TestFullDisk(t *testing.T) {
	whole, _ := create(t, manyPackages("60").Blobs(), sqlite.WriteOptions{})
	size := len(fileBytes(t, whole))
	for room := 0; room < size; room += size/24 + 511 {
		dir := t.TempDir()
		path := filepath.Join(dir, "index.db")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := state(t, dir)
		out, err := job(fmt.Sprintf("create-limited %d", room), path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), sqlite.ErrWrite.Error()) {
			t.Errorf("%d bytes of room: %v: %s", room, err, out)
		}
		sameState(t, before, state(t, dir))
	}
}

// The path and the journal files next to it are checked before anything is written.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string) error
		text string // empty: it is replaced
	}{
		"nothing":       {func(*testing.T, string) error { return nil }, ""},
		"text":          {func(_ *testing.T, p string) error { return os.WriteFile(p, []byte("text"), 0o600) }, ""},
		"an empty file": {func(_ *testing.T, p string) error { return os.WriteFile(p, nil, 0o600) }, ""},
		"part of a header": {func(_ *testing.T, p string) error {
			return os.WriteFile(p, []byte(magic+"\x10"), 0o600)
		}, ""},
		"a damaged header": {func(_ *testing.T, p string) error {
			return os.WriteFile(p, append([]byte(magic), make([]byte, 5000)...), 0o600)
		}, ""},
		"a damaged body": {func(t *testing.T, p string) error {
			return os.WriteFile(p,
				append(fileBytes(t, recorded.Part(t).Database(t, "small"))[:100], make([]byte, 8092)...), 0o600)
		}, ""},
		"a link": {func(_ *testing.T, p string) error {
			return os.Symlink(filepath.Join(filepath.Dir(p), "target"), p)
		}, "symbolic link"},
		"a directory": {func(_ *testing.T, p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		"a journal": {func(_ *testing.T, p string) error {
			return errors.Join(os.WriteFile(p, []byte("text"), 0o600), os.WriteFile(p+"-journal", hotJournal(), 0o600))
		}, "-journal"},
		"a log": {func(_ *testing.T, p string) error {
			return os.WriteFile(p+"-wal", []byte("log"), 0o600)
		}, "-wal"},
		"an empty log":      {func(_ *testing.T, p string) error { return os.WriteFile(p+"-wal", nil, 0o600) }, ""},
		"no such directory": {func(_ *testing.T, p string) error { return os.Remove(filepath.Dir(p)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			path := filepath.Join(dir, "index.db")
			if err := errors.Join(os.Mkdir(dir, 0o700), c.make(t, path)); err != nil {
				t.Fatal(err)
			}
			_, err := sqlite.Create(context.Background(), path, simple(nil).Blobs(), sqlite.WriteOptions{})
			if c.text != "" {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			nothingIn(t, dir, "index.db", "index.db-wal")
			if back, _, err := read(t, path, sqlite.Options{}); err != nil || len(back.Packages) != 1 {
				t.Errorf("%v %v", back, err)
			}
		})
	}
}

// hotJournal returns the start of an interrupted transaction's journal.
func hotJournal() []byte {
	return append([]byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}, make([]byte, 1000)...)
}

func TestCancelledWriter(t *testing.T) {
	path, _ := create(t, simple(nil).Blobs(), sqlite.WriteOptions{})
	before := state(t, filepath.Dir(path))
	for _, at := range []int{0, 1, 100} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := sqlite.Create(ctx, path, func(yield func(declcfg.Blob, error) bool) {
			n := 0
			for b := range manyPackages("50").Blobs() {
				if n == at {
					cancel()
				}
				n++
				if !yield(b, nil) {
					return
				}
			}
		}, sqlite.WriteOptions{})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		sameState(t, before, state(t, filepath.Dir(path)))
	}
}

// The sqlite3 program finds no error in the written database.
func TestOfficialProgram(t *testing.T) {
	program, err := osexec.LookPath("sqlite3")
	if err != nil {
		t.Skip("there is no program sqlite3 here; Create has made the same checks with its own library")
	}
	for _, name := range []string{"small", "medium", "deprec-v1.2.0", "subs", "schema-0"} {
		catalog, _, err := read(t, recorded.Part(t).Database(t, name), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		path, _ := create(t, catalog.Blobs(), sqlite.WriteOptions{})
		out, err := osexec.Command(program, "-readonly", path,
			"PRAGMA integrity_check; PRAGMA foreign_key_check; PRAGMA page_size; PRAGMA auto_vacuum; PRAGMA "+
				"freelist_count; PRAGMA journal_mode; PRAGMA user_version; PRAGMA application_id").CombinedOutput()
		if got := string(out); err != nil || got != "ok\n4096\n0\n0\ndelete\n0\n0\n" {
			t.Errorf("%s: %v %q", name, err, got)
		}
		// With foreign keys on, packages and bundles can be deleted as opm does.
		out, err = osexec.Command(program, path,
			"PRAGMA foreign_keys=ON; DELETE FROM operatorbundle; SELECT (SELECT count(*) FROM package) + (SELECT "+
				"count(*) FROM channel_entry) + (SELECT count(*) FROM properties) + (SELECT count(*) FROM api)").CombinedOutput()
		if got := string(out); err != nil || got != "0\n" {
			t.Errorf("%s: deleting: %v %q", name, err, got)
		}
	}
}
