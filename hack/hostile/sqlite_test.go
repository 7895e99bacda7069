//go:build hostile

package hostile

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// databaseReaders returns the commands that read the database "index.db", with arguments that would make them write
// something.
func databaseReaders() [][]string {
	return [][]string{
		{"render", "index.db"},
		{"migrate", "index.db", "out"},
		{"build", "catalog", "index.db", "-t", "example.com/foo:v1"},
		{"list", "packages", "index.db"},
		{"serve", "index.db", "--port", "0"},
		{"registry", "serve", "-d", "index.db", "--port", "0"},
	}
}

func smallDatabase(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../../testdata/db/small.db")
	check(t, err)
	return data
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	small := smallDatabase(t)
	sql := func(statement string) func(*testing.T, *box) {
		return func(t *testing.T, b *box) {
			need(t, "sqlite3")
			path := b.write("index.db", string(small))
			out, err := exec.Command("sqlite3", path, statement).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	content := func(text string) func(*testing.T, *box) {
		return func(t *testing.T, b *box) { b.write("index.db", text) }
	}
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i name, i " +
		"default_channel FROM n"
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, b *box)
		class int
		text  string
	}{
		{"no bytes", content(""), input, "index.db"},
		{"15 bytes", content("SQLite format 3"), input, "index.db"},
		{"magic and noise", content("SQLite format 3\x00" + strings.Repeat("\xa5\x5a", 5000)), 0, "index.db"},
		{"text", content("hello world\n"), input, "index.db"},
		{"truncated", content(string(small[:len(small)-20_000])), integrity, "damaged"},
		{"longer than its page count", content(string(small) + strings.Repeat("x", 4096)), 0, "index.db"},
		{"2 GiB sparse", func(t *testing.T, b *box) {
			check(t, os.Truncate(b.write("index.db", string(small[:100])), 2<<30))
		}, limit, "limit"},
		{"900 MiB sparse", func(t *testing.T, b *box) {
			check(t, os.Truncate(b.write("index.db", string(small[:100])), 900<<20))
		}, 0, "index.db"},
		{"blob of 100 MB", sql("UPDATE operatorbundle SET bundle = zeroblob(100000000) WHERE rowid = 1"), limit,
			"limit|large|big"},
		{"endless view", sql("DROP TABLE package; CREATE VIEW package AS " + endless), input, "view"},
		{"trigger", sql("CREATE TRIGGER x AFTER INSERT ON operatorbundle BEGIN DELETE FROM package; END"), input,
			"trigger"},
		{"schema version 99", sql("UPDATE schema_migrations SET version = 99"), input, "version"},
		{"csv is not JSON", sql("UPDATE operatorbundle SET csv = 'hello' WHERE rowid = 1"), input, "csv"},
		{"version latest", sql("UPDATE operatorbundle SET version = 'latest' WHERE rowid = 1"), input, "latest"},
		{"package name with a path",
			sql(
				"DELETE FROM package WHERE name <> 'etcd'; UPDATE package SET name = '../../canary/x'; UPDATE " +
					"channel SET package_name = '../../canary/x' WHERE package_name = 'etcd'; UPDATE channel_entry " +
					"SET package_name = '../../canary/x' WHERE package_name = 'etcd'; UPDATE properties SET value = " +
					"replace(value, 'etcd', '../../canary/x')"), input, "."},
		{"bundle name with an escape sequence",
			sql("UPDATE operatorbundle SET name = name || char(27) || '[31m', version = 'x'"), input, "."},
		{"log beside it that is a FIFO", func(t *testing.T, b *box) {
			b.write("index.db", string(small))
			check(t, exec.Command("mkfifo", filepath.Join(b.dir, "index.db-wal")).Run())
		}, input, "-wal beside it"},
		{"journal beside it that is a link", func(t *testing.T, b *box) {
			b.write("index.db", string(small))
			check(t, os.Symlink("../canary/secret", filepath.Join(b.dir, "index.db-journal")))
		}, input, "-journal beside it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(t, b)
			for _, args := range databaseReaders() {
				class := c.class
				if class == 0 {
					// Damaged or invalid: depending on which check fails first.
					class = b.run(append([]string{"--error-format=json"}, args...)...).class
					if class != input && class != integrity {
						t.Errorf("%q: class %d", args, class)
					}
				}
				b.refused(class, c.text, args...)
			}
		})
	}
}

// A database is only read, also if it is read-only, in use by another program, or has an unusual name.
func TestDatabasesOfOthers(t *testing.T) {
	small := smallDatabase(t)
	for _, name := range []string{"a?mode=rwc&x=.db", "a#b.db", "a%2e.db", "-.db", "a b\n.db", "file:x.db",
		strings.Repeat("n", 240) + ".db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			path := b.write(name, string(small))
			before := b.snapshot()
			o := b.run("list", "packages", path)
			if o.status != 0 || !strings.Contains(o.stdout, "etcd") {
				t.Errorf("status %d: %s", o.status, o.stderr)
			}
			b.unchanged(name, before)
		})
	}
	t.Run("read-only directory", func(t *testing.T) {
		t.Parallel()
		needRoot(t)
		root := t.TempDir()
		mountTmpfs(t, root, "size=8m")
		check(t, os.WriteFile(filepath.Join(root, "index.db"), small, 0o444))
		check(t, exec.Command("mount", "-o", "remount,ro", root).Run())
		b := newBox(t)
		o := b.run("migrate", filepath.Join(root, "index.db"), "out")
		if o.status != 0 {
			t.Errorf("status %d: %s", o.status, o.stderr)
		}
		b.noTemp("read-only directory")
	})
	t.Run("a writer has the lock", func(t *testing.T) {
		t.Parallel()
		need(t, "sqlite3")
		b := newBox(t)
		path := b.write("index.db", string(small))
		cmd := exec.Command("sqlite3", path)
		in, err := cmd.StdinPipe()
		check(t, err)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		fmt.Fprintln(in, "BEGIN EXCLUSIVE; SELECT 'locked';")
		buf := make([]byte, 16)
		_, err = io.ReadFull(out, buf[:6])
		check(t, err)
		for _, args := range databaseReaders()[1:2] {
			o := b.run(append([]string{"--error-format=json"}, args...)...)
			if o.status != 1 || o.class != local || !strings.Contains(o.message, "locked") || o.took > 15*time.Second {
				t.Errorf("%q: status %d after %s: %s", args, o.status, o.took, o.stderr)
			}
		}
		check(t, in.Close())
		check(t, cmd.Wait())
		if data, err := os.ReadFile(path); err != nil || string(data) != string(small) {
			t.Errorf("the database has changed: %v", err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		needRoot(t)
		need(t, "setpriv")
		b := newBox(t)
		path := b.write("index.db", string(small))
		check(t, os.Chmod(path, 0))
		for d := b.dir; d != "/"; d = filepath.Dir(d) {
			if strings.Contains(d, "Test") {
				check(t, os.Chmod(d, 0o755))
			}
		}
		cmd := exec.CommandContext(context.Background(), "setpriv",
			append(unprivileged(), bindery, "--error-format=json", "list", "packages", "index.db")...)
		cmd.Dir, cmd.Env = b.dir, b.env
		if o := b.finish(cmd); o.status != 1 || o.class != local || !strings.Contains(o.message, "permission") {
			t.Errorf("status %d: %s", o.status, o.stderr)
		}
	})
}

// unprivileged returns setpriv's flags for the privileges of a restricted pod.
func unprivileged() []string {
	return []string{"--reuid", "1000690000", "--regid", "0", "--clear-groups", "--bounding-set=-all", "--no-new-privs"}
}
