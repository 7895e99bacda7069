//go:build hostile

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An output path with other content is refused, and the content stays.
func TestOutputPaths(t *testing.T) {
	t.Parallel()
	migrate := []string{"migrate", "cat", "out"}
	build := func(output string) []string {
		return []string{"build", "catalog", "cat", "-t", "example.com/foo:v1", "--server", "none", "--output", output}
	}
	file := func(b *box) { b.write("out", "mine") }
	dir := func(b *box) { b.write("out/mine", "mine") }
	link := func(b *box) { check(b.t, os.Symlink("../canary", filepath.Join(b.dir, "out"))) }
	dangling := func(b *box) { check(b.t, os.Symlink("../canary/new", filepath.Join(b.dir, "out"))) }
	linkToFile := func(b *box) { check(b.t, os.Symlink("../canary/secret", filepath.Join(b.dir, "out"))) }
	fifo := func(b *box) { check(b.t, syscall.Mkfifo(filepath.Join(b.dir, "out"), 0o644)) }
	nothing := func(*box) {}
	for _, c := range []struct {
		name string
		make func(*box)
		args []string
	}{
		{"migrate to a file", file, migrate},
		{"migrate to a directory with something in it", dir, migrate},
		{"migrate to a link", link, migrate},
		{"migrate to a dangling link", dangling, migrate},
		{"migrate to a FIFO", fifo, migrate},
		{"migrate to its input", nothing, []string{"migrate", "cat", "cat"}},
		{"migrate below a file", file, []string{"migrate", "cat", "out/x"}},
		{"migrate of a database to itself", nothing, []string{"migrate", "small.db", "small.db"}},
		{"layout over a file", file, build("oci:out:v1")},
		{"layout over a directory of something else", dir, build("oci:out:v1")},
		{"layout over a link", link, build("oci:out:v1")},
		{"layout over a dangling link", dangling, build("oci:out:v1")},
		{"layout over the input", nothing, build("oci:cat:v1")},
		{"layout over a FIFO", fifo, build("oci:out:v1")},
		{"archive over a directory", dir, build("oci-archive:out:v1")},
		{"archive over a link", linkToFile, build("oci-archive:out:v1")},
		{"archive over a dangling link", dangling, build("docker-archive:out")},
		{"archive over a FIFO", fifo, build("docker-archive:out")},
		{"image directory over a directory of something else", dir, build("dir:out")},
		{"image directory over a link", link, build("dir:out")},
		{"image directory over the input", nothing, build("dir:cat")},
		{"two images in one file", nothing, []string{"build", "catalog", "cat", "-t", "a/b:v1", "--output",
			"oci-archive:out", "--output", "docker-archive:out"}},
		{"digest file over a link", linkToFile, append(build("oci:layout:v1"), "--digest-file", "out")},
		{"report over a link", linkToFile, append(migrate[:2:2], "dir", "--report", "out")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/foo/catalog.yaml", healthy)
			b.write("small.db", string(smallDatabase(t)))
			c.make(b)
			before := b.snapshot()
			o := b.run(append([]string{"--error-format=json"}, c.args...)...)
			if o.status != 1 || o.class != local && o.class != usage && o.class != input || o.stdout != "" {
				t.Errorf("status %d, class %d, stdout %q: %s", o.status, o.class, o.stdout, o.stderr)
			}
			b.unchanged(c.name, before)
		})
	}
}

// A path that looks like a flag or an image name is a path.
func TestStrangeOutputPaths(t *testing.T) {
	t.Parallel()
	for _, out := range []string{"-", "--", "-o", "a b", "a\nb", "日本", ".hidden", strings.Repeat("n", 200)} {
		b := newBox(t)
		b.write("cat/foo/catalog.yaml", healthy)
		b.accepted("migrate", "cat", "--", out)
		if got := names(t, b.dir); len(got) != 2 {
			t.Errorf("%q: made %q", out, got)
		}
	}
}

// Input directories are only read, and an output next to them needs no write permission for them.
func TestReadOnlyInput(t *testing.T) {
	needRoot(t)
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	mountTmpfs(t, filepath.Join(b.dir, "cat"), "size=1m")
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("cat/small.db", string(smallDatabase(t)))
	check(t, syscall.Mount("tmpfs", filepath.Join(b.dir, "cat"), "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	b.accepted("migrate", "cat/small.db", "out1")
	b.accepted("migrate", "cat/foo", "out2")
	b.accepted("build", "catalog", "cat/foo", "-t", "example.com/foo:v1")
	b.accepted("serve", "cat/foo", "--cache-dir", "cache", "--cache-only")
	before := b.snapshot()
	b.refused(local, "read-only", "migrate", "cat/foo", "cat/out")
	b.refused(local, "read-only", "build", "catalog", "cat/foo", "-t", "x/y:z", "--output", "oci:cat/out")
	b.refused(local, "read-only", "build", "catalog", "cat/foo", "-t", "x/y:z", "--output", "oci-archive:cat/out")
	b.refused(local, "read-only", "serve", "cat/foo", "--cache-dir", "cat/out", "--cache-only")
	b.unchanged("read-only outputs", before)
}

// If standard output is closed, the program ends as with SIGPIPE; a full one is an error.
func TestStandardOutput(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy+repeat(20_000, func(i int) string {
		return fmt.Sprintf("---\nschema: x\npackage: foo\nname: n%d\n", i)
	}))
	for _, args := range [][]string{{"render", "cat"}, {"list", "packages", "cat"},
		{"build", "catalog", "cat", "-t", "x/y:z", "--server", "none"}, {"man"}} {
		r, w, err := os.Pipe()
		check(t, err)
		check(t, r.Close())
		cmd := b.command(context.Background(), args...)
		cmd.Stdout = w
		if o := b.finish(cmd); o.status != 141 {
			t.Errorf("%q: status %d, want 141: %s", args, o.status, o.stderr)
		}
		check(t, w.Close())
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		check(t, err)
		cmd = b.command(context.Background(), append([]string{"--error-format=json"}, args...)...)
		cmd.Stdout = full
		if o := b.finish(cmd); o.status != 1 || o.class != local {
			t.Errorf("%q: status %d, class %d with a full standard output: %s", args, o.status, o.class, o.stderr)
		}
		check(t, full.Close())
		b.noTemp(fmt.Sprint(args))
	}
}

// Concurrent writers of one layout lose no tag, and readers see a complete layout at all times.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	const writers = 20
	var wg sync.WaitGroup
	failures := make([]string, writers)
	done := make(chan struct{})
	for i := range writers {
		wg.Go(func() {
			tag := fmt.Sprintf("v%d", i%(writers-5)) // some write the same tag
			cmd := b.command(context.Background(), "build", "catalog", "cat", "-t", "example.com/foo:"+tag, "--server",
				"none", "--label", "tag="+tag, "--output", "oci:out")
			if out, err := cmd.CombinedOutput(); err != nil {
				failures[i] = fmt.Sprintf("%v: %s", err, out)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for reads := 0; ; reads++ {
		select {
		case <-done:
			checkLayout(t, "at the end", filepath.Join(b.dir, "out"))
			for _, f := range failures {
				if f != "" {
					t.Error(f)
				}
			}
			data, err := os.ReadFile(filepath.Join(b.dir, "out", "index.json"))
			check(t, err)
			if n := bytes.Count(data, []byte("org.opencontainers.image.ref.name")); n != writers-5 {
				t.Errorf("%d tags, want %d", n, writers-5)
			}
			if got := names(t, filepath.Join(b.dir, "out")); len(got) != 3 {
				t.Errorf("left: %q", got)
			}
			if got := names(t, b.dir); len(got) != 2 {
				t.Errorf("left: %q", got)
			}
			b.noTemp("many writers")
			return
		case <-time.After(2 * time.Millisecond):
			if _, err := os.Stat(filepath.Join(b.dir, "out", "index.json")); err == nil {
				checkLayout(t, fmt.Sprintf("read %d", reads), filepath.Join(b.dir, "out"))
			}
		}
	}
}

// No command starts a program.
func TestNoProgramIsStarted(t *testing.T) {
	need(t, "strace")
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("small.db", string(smallDatabase(t)))
	b.accepted("build", "catalog", "cat", "-t", "example.com/foo:v1", "--server", "none", "--output", "oci:layout")
	for i, args := range [][]string{
		{"version"}, {"--help"}, {"man"}, {"completion", "bash"}, {"init", "foo"}, {"validate", "cat"},
		{"render", "cat"}, {"render", "small.db"},
		{"render", "oci:layout:v1"}, {"migrate", "small.db", "out", "--verify", "--report", "report"},
		{"list", "bundles", "cat"},
		{"build", "catalog", "cat", "-t", "x/y:z"},
		{"build", "catalog", "cat", "-t", "127.0.0.1:1/y:z", "--push", "--retries", "0"},
		{"build", "catalog", "cat", "-t", "x/y:z", "--output", "docker-archive:archive"},
		{"generate", "dockerfile", "cat"},
		{"serve", "cat", "--cache-dir", "cache", "--cache-only"},
		{"registry", "serve", "-d", "small.db", "--port", "0", "--timeout-seconds", "1"},
		{"probe", "-addr", "127.0.0.1:1"}, {"nonsense"},
	} {
		log := filepath.Join(b.home, fmt.Sprint(i))
		cmd := exec.Command("strace",
			append([]string{"-f", "-qq", "-e", "trace=execve,execveat", "-o", log, bindery}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stdout = b.dir, b.env, io.Discard
		b.finish(cmd)
		data, err := os.ReadFile(log)
		check(t, err)
		if n := bytes.Count(data, []byte("exec")); n != 1 {
			t.Errorf("%q: %d programs were started:\n%s", args, n, data)
		}
	}
}

// Nothing about the user, the machine or the time gets into an image.
func TestSameDigestEverywhere(t *testing.T) {
	needRoot(t)
	need(t, "setpriv")
	t.Parallel()
	digests := map[string]string{}
	for _, c := range []struct {
		name   string
		prefix []string
		env    []string
		umask  string
	}{
		{"plain", nil, nil, "022"},
		{"umask 000", nil, nil, "000"},
		{"umask 077", nil, nil, "077"},
		{"other zone and language", nil, []string{"TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8"},
			"022"},
		{"one processor", nil, []string{"GOMAXPROCS=1"}, "022"},
		{"little memory", nil, []string{"GOMEMLIMIT=50MiB", "GOGC=10"}, "022"},
		{"other user", append([]string{"setpriv"}, unprivileged()...), nil, "022"},
	} {
		b := newBox(t)
		b.write("cat/foo/catalog.yaml", healthy)
		b.write("cat/bar/catalog.yaml", strings.ReplaceAll(healthy, "foo", "bar"))
		for d := b.dir; strings.Contains(d, "Test"); d = filepath.Dir(d) {
			check(t, os.Chmod(d, 0o777))
		}
		check(t, os.Chmod(b.tmp, 0o777))
		args := append(append([]string{"-c", "umask " + c.umask + `; exec "$@"`, "sh"}, c.prefix...), bindery, "build",
			"catalog", "cat", "-t", "example.com/foo:v1")
		cmd := exec.Command("/bin/sh", args...)
		cmd.Dir, cmd.Env = b.dir, append(b.env, c.env...)
		o := b.finish(cmd)
		if o.status != 0 {
			t.Errorf("%s: status %d: %s", c.name, o.status, o.stderr)
		}
		digests[o.stdout] += c.name + "; "
	}
	if len(digests) != 1 {
		t.Errorf("digests differ: %q", digests)
	}
}
