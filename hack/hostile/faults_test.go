//go:build hostile

package hostile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// most returns n multiplied by HOSTILE_THOROUGH, if that is set.
func most(n int) int {
	if times, err := strconv.Atoi(os.Getenv("HOSTILE_THOROUGH")); err == nil && times > 0 {
		return n * times
	}
	return n
}

// tries returns how often fault j is injected into writer i: for half of the combinations never, else once, and twice
// for every third of the rest. With HOSTILE_THOROUGH all combinations are tried, more often.
func tries(i, j int) int {
	switch n := most(1); {
	case n > 1:
		return n
	case (i+j)%2 > 0:
		return 0
	case (i+j)%6 > 0:
		return 1
	}
	return 2
}

// writer is a command that writes something, with a way to describe its output.
type writer struct {
	name string
	// old creates the output that exists before, if any; args are the arguments of the disturbed run.
	old, args []string
	output    string
}

// writers returns commands that write to the working directory, which has the catalog "cat" and the database
// "small.db".
func writers() []writer {
	build := func(tag, output string) []string {
		return []string{"build", "catalog", "cat", "-t", "example.com/foo:" + tag, "--label", "tag=" + tag, "--server",
			"none", "--output", output}
	}
	return []writer{
		{"migrate", nil, []string{"migrate", "small.db", "out"}, "out"},
		{"migrate with a report", []string{"migrate", "small.db", "first", "--report", "report"},
			[]string{"migrate", "small.db", "out", "-o", "yaml", "--report", "report", "--verify"}, "out"},
		{"layout", nil, build("v1", "oci:out"), "out"},
		{"layout with another tag", build("v0", "oci:out"), build("v1", "oci:out"), "out"},
		{"layout with the same tag", append(build("v1", "oci:out"), "--label", "x=y"), build("v1", "oci:out"), "out"},
		{"layout with twins", build("v0", "oci:out"), append(build("v1", "oci:out"), "--compression", "auto"), "out"},
		{"composition", build("v0", "oci:img"),
			[]string{"build", "compose", "compose.yaml", "-t", "example.com/foo:v1", "--any-packages", "--server",
				"none", "--output", "oci:out"}, "out"},
		{"layout from a database", build("v0", "oci:out"),
			[]string{"build", "catalog", "small.db", "-t", "example.com/foo:v1", "--server", "none", "--output",
				"oci:out", "--digest-file", "digest"}, "out"},
		{"OCI archive", build("v0", "oci-archive:out"), build("v1", "oci-archive:out"), "out"},
		{"docker archive", build("v0", "docker-archive:out"), build("v1", "docker-archive:out"), "out"},
		{"image directory", build("v0", "dir:out"), build("v1", "dir:out"), "out"},
		{"cache", nil, []string{"serve", "cat", "--cache-dir", "out", "--cache-only"}, "out"},
		{"bundle layout", nil, []string{"build", "bundle", "bundle", "-t", "example.com/b:v1", "--output", "oci:out"},
			"out"},
		{"bundle metadata", nil,
			[]string{"bundle", "generate", "bundle/manifests", "-p", "etcd", "-c", "a", "-u", "out"}, "out"},
		{"bundle metadata over others",
			[]string{"bundle", "generate", "bundle/manifests", "-p", "etcd", "-c", "b", "-u", "out"},
			[]string{"bundle", "generate", "bundle/manifests", "-p", "etcd", "-c", "a", "-u", "out", "--overwrite"},
			"out"},
		{"unpacked bundle", []string{"build", "bundle", "bundle", "-t", "example.com/b:v1", "--output", "oci:img"},
			[]string{"bundle", "unpack", "oci:img:v1", "-o", "out"}, "out"},
		{"lock file", []string{"build", "bundle", "bundle", "-t", "example.com/b:v1", "--output", "oci:img"},
			[]string{"render", "oci:img:v1", "--lock", "out"}, "out"},
		{"edit of a database", nil, []string{"registry", "prune", "-d", "small.db", "-p", "etcd"}, "small.db"},
		{"edit of a directory", nil,
			[]string{"catalog", "deprecate", "cat", "foo.v1.0.0", "bar.v1.0.0", "--message", "old"}, "cat"},
		{"generated index", nil, []string{"index", "rm", "--generate", "-f", "small.db", "-o", "etcd"}, "database"},
	}
}

// imageEdits returns writers whose images contain a server: they are not tried with every possible disk size.
func imageEdits() []writer {
	build := func(from string) []string {
		return []string{"build", "catalog", from, "-t", "example.com/foo:v0", "--server", "none", "--output", "oci:out"}
	}
	return []writer{
		{"bundle added to an index", build("cat"),
			[]string{"index", "add", "-f", "oci:out:v0", "-b", "bundle", imageTemplate, "--mode", "semver", "-t",
				"example.com/foo:v1", "--output", "oci:out"}, "out"},
		{"package removed from an index", build("cat"),
			[]string{"index", "rm", "-f", "oci:out:v0", "-o", "foo", "-t", "example.com/foo:v1", "--output", "oci:out"},
			"out"},
		{"database image without a package", build("small.db"),
			[]string{"index", "rm", "-f", "oci:out:v0", "-o", "etcd", "-t", "example.com/foo:v1", "--output",
				"oci:out"}, "out"},
	}
}

// prepare fills the working directory and creates the old output.
func (w writer) prepare(t *testing.T, b *box) {
	t.Helper()
	b.write("compose.yaml", "references: [{name: foo, image: \"oci:img:v0\"}]\n")
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("cat/bar/catalog.yaml", strings.NewReplacer("foo", "bar").Replace(healthy))
	data, err := os.ReadFile("../../testdata/db/small.db")
	check(t, err)
	b.write("small.db", string(data))
	check(t, os.CopyFS(filepath.Join(b.dir, "bundle"), os.DirFS("../../testdata/bundles/etcd/0.9.4")))
	if w.old != nil {
		b.accepted(w.old...)
	}
}

// expect runs the writer undisturbed and returns the state before and after it.
func (w writer) expect(t *testing.T) (before, after string) {
	t.Helper()
	b := newBox(t)
	w.prepare(t, b)
	before = b.snapshot()
	b.accepted(w.args...)
	return before, b.snapshot()
}

// restore resets the working directory to the state after prepare.
func (b *box) restore(saved string) {
	b.t.Helper()
	check(b.t, os.RemoveAll(b.dir))
	check(b.t, os.CopyFS(b.dir, os.DirFS(saved)))
	check(b.t, os.RemoveAll(b.tmp))
	check(b.t, os.Mkdir(b.tmp, 0o755))
}

// save copies the working directory.
func (b *box) save() string {
	b.t.Helper()
	dir := b.t.TempDir()
	check(b.t, os.CopyFS(dir, os.DirFS(b.dir)))
	return dir
}

// Each of several system calls fails at its first, second, ... use: the run ends with a local error and leaves
// everything unchanged, or succeeds without the call.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	need(t, "strace")
	for i, w := range append(writers(), imageEdits()...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			b := newBox(t)
			w.prepare(t, b)
			saved := b.save()
			for j, fault := range []string{"fsync:error=EIO", "renameat:error=EXDEV", "renameat:error=EIO",
				"openat:error=EMFILE", "mkdirat:error=ENOSPC", "linkat:error=EXDEV", "flock:error=ENOLCK"} {
				for n := 1; n <= tries(i, j); n++ {
					b.restore(saved)
					before := b.snapshot()
					label := fmt.Sprintf("%s, call %d", fault, n)
					call, _, _ := strings.Cut(fault, ":")
					when := strconv.Itoa(n)
					if call == "flock" {
						// A file system either has locks or not; losing them halfway is not tested.
						when = "1+"
					}
					var o straced
					// strace counts calls per thread: if two threads are affected, the rollback can fail too. Such a
					// run proves nothing and is repeated.
					for range 10 {
						o = b.strace(fmt.Sprintf("-e inject=%s:when=%s", fault, when), call,
							append([]string{"--error-format=json"}, w.args...))
						if o.injected <= 1 || o.status != 1 || difference(before, b.snapshot()) == "" {
							break
						}
						b.restore(saved)
					}
					if o.injected == 0 {
						break
					}
					switch {
					case o.status == 0:
						if got := b.snapshot(); got != after {
							t.Errorf("%s: status 0, but the result differs:%s", label, difference(after, got))
						}
						b.noTemp(label)
					case o.status == 1:
						// A migration's report is written after the output is complete.
						if d := difference(before, b.snapshot()); d != "" && !laterFile(w, d) {
							t.Errorf("%s: %s\nfiles changed:%s", label, o.message, d)
						}
						b.noTemp(label)
						if o.class != local {
							t.Errorf("%s: class %d: %s", label, o.class, o.stderr)
						}
					default:
						t.Errorf("%s: status %d, signal %v: %s", label, o.status, o.signal, o.stderr)
					}
				}
			}
		})
	}
}

// laterFile reports whether the difference is a finished output whose account or Dockerfile could not be written.
func laterFile(w writer, d string) bool {
	return slices.ContainsFunc(w.args, func(a string) bool {
		return a == "--report" || a == "--digest-file" ||
			a == "--generate"
	}) && !strings.Contains(d, ".bindery")
}

type straced struct {
	outcome
	injected int // number of injected faults
}

// strace runs the program with an injected fault.
func (b *box) strace(inject, call string, args []string) straced {
	b.t.Helper()
	log := filepath.Join(filepath.Dir(b.dir), "strace.log")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	full := append([]string{"-f", "-qq", "-o", log, "-e", "trace=" + call}, strings.Fields(inject)...)
	cmd := exec.CommandContext(ctx, "strace", append(append(full, bindery), args...)...)
	cmd.Dir, cmd.Env = b.dir, b.env
	o := b.finish(cmd)
	data, err := os.ReadFile(log)
	check(b.t, err)
	injected := strings.Count(string(data), "(INJECTED)")
	if strings.Contains(string(data), "killed by SIGKILL") {
		injected = max(injected, 1)
	}
	return straced{o, injected}
}

// A run that is killed at any of its system calls leaves the old or the new output, and the next run succeeds and
// removes all leftovers.
func TestKilledAtCalls(t *testing.T) {
	t.Parallel()
	need(t, "strace")
	for i, w := range append(writers(), imageEdits()...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			b := newBox(t)
			w.prepare(t, b)
			saved := b.save()
			for j, call := range []string{"fsync", "renameat", "linkat", "unlinkat"} {
				for n := 1; n <= tries(i, j); n++ {
					b.restore(saved)
					o := b.strace(fmt.Sprintf("-e inject=%s:signal=KILL:when=%d", call, n), call, w.args)
					if o.injected == 0 {
						break
					}
					w.recovers(t, b, fmt.Sprintf("killed at %s %d", call, n), after)
				}
			}
		})
	}
}

// A run that is killed at a random moment leaves the old or the new output.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	runs := most(2)
	for _, w := range append(writers(), imageEdits()...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			b := newBox(t)
			w.prepare(t, b)
			saved := b.save()
			start := time.Now()
			b.accepted(w.args...)
			whole := time.Since(start)
			random := rand.New(rand.NewPCG(1, uint64(len(w.name))))
			for i := range runs {
				b.restore(saved)
				delay := time.Duration(random.Float64() * 1.1 * float64(whole))
				ctx, cancel := context.WithTimeout(context.Background(), delay)
				_ = b.command(ctx, w.args...).Run() // most are killed
				cancel()
				w.recovers(t, b, fmt.Sprintf("run %d, killed after %s", i, delay), after)
			}
		})
	}
}

// recovers requires that an output is complete, and that the next run gives the same result as an undisturbed one.
func (w writer) recovers(t *testing.T, b *box, label, after string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(b.dir, "out", "index.json")); err == nil {
		checkLayout(t, label, filepath.Join(b.dir, "out"))
	}
	if w.name == "migrate" || w.name == "migrate with a report" || w.name == "unpacked bundle" {
		// The output may be finished already.
		if _, err := os.Stat(filepath.Join(b.dir, "out")); err == nil {
			again := []string{"migrate", "small.db", "out"}
			if w.name == "unpacked bundle" {
				again = w.args
			}
			o := b.run(again...)
			if o.status != 1 {
				t.Errorf("%s: the output is there, and the next run ended with %d: %s", label, o.status, o.stderr)
			}
			check(t, os.RemoveAll(filepath.Join(b.dir, "out")))
		}
	}
	o := b.run(w.args...)
	if o.status != 0 {
		t.Errorf("%s: the next run failed: %s", label, o.stderr)
	}
	if got := b.snapshot(); got != after {
		t.Errorf("%s: after the next run%s", label, difference(after, got))
	}
	b.noTemp(label)
}

// checkLayout requires that everything an index names exists and matches its digest.
func checkLayout(t *testing.T, label, dir string) {
	t.Helper()
	type descriptor struct {
		Digest string
		Size   int64
	}
	var index struct{ Manifests []descriptor }
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	check(t, err)
	if err := json.Unmarshal(data, &index); err != nil {
		t.Errorf("%s: index.json: %v", label, err)
		return
	}
	blob := func(d descriptor) []byte {
		algorithm, name, _ := strings.Cut(d.Digest, ":")
		data, err := os.ReadFile(filepath.Join(dir, "blobs", algorithm, name))
		sum := sha256.Sum256(data)
		if err != nil || hex.EncodeToString(sum[:]) != name || int64(len(data)) != d.Size {
			t.Errorf("%s: blob %s: %d bytes, %v", label, d.Digest, len(data), err)
		}
		return data
	}
	for len(index.Manifests) > 0 {
		m := index.Manifests[0]
		index.Manifests = index.Manifests[1:]
		var manifest struct {
			Config            descriptor
			Layers, Manifests []descriptor
		}
		switch err := json.Unmarshal(blob(m), &manifest); {
		case err != nil:
			t.Errorf("%s: %v", label, err)
		case manifest.Manifests != nil:
			index.Manifests = append(index.Manifests, manifest.Manifests...)
		default:
			blob(manifest.Config)
			for _, l := range manifest.Layers {
				blob(l)
			}
		}
	}
}

// A disk of any size becomes full at some point: the old output stays, no new files are left, and with enough space the
// command succeeds.
func TestFullDisks(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, w := range writers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			failed, done := 0, 0
			for blocks := 1; blocks < 400 && done < 2; blocks += 1 + blocks/most(2) {
				root := t.TempDir()
				mountTmpfs(t, root, "size=20m")
				b := boxIn(t, root)
				w.prepare(t, b)
				// The existing files stay; only the free space varies.
				used := usedBytes(t, root)
				check(t,
					syscall.Mount("tmpfs", root, "tmpfs", syscall.MS_REMOUNT,
						fmt.Sprintf("size=%d", used+int64(blocks)*4096)))
				before := b.snapshot()
				o := b.run(append([]string{"--error-format=json"}, w.args...)...)
				label := fmt.Sprintf("%d KiB of room", 4*blocks)
				switch {
				case o.status == 0:
					done++
					if got := b.snapshot(); got != after {
						t.Errorf("%s: status 0, but the result differs:%s", label, difference(after, got))
					}
				default:
					failed++
					if d := difference(before, b.snapshot()); d != "" && !laterFile(w, d) {
						t.Errorf("%s: %s\nfiles changed:%s", label, o.message, d)
					}
					if o.class != local || o.status != 1 {
						t.Errorf("%s: status %d, class %d: %s", label, o.status, o.class, o.stderr)
					}
				}
				b.noTemp(label)
				check(t, syscall.Unmount(root, syscall.MNT_DETACH))
			}
			// One block suffices for a lock file.
			if failed == 0 && w.name != "lock file" || done == 0 {
				t.Errorf("%d runs failed and %d ended well: both are wanted", failed, done)
			}
		})
	}
}

func mountTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); errors.Is(err, syscall.EPERM) {
		t.Skip("may not mount")
	} else {
		check(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // most are unmounted already
}

func usedBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	check(t, syscall.Statfs(dir, &s))
	return int64(s.Blocks-s.Bfree) * s.Bsize
}

// With few file descriptors the command succeeds or reports the reason.
func TestFewOpenFiles(t *testing.T) {
	t.Parallel()
	for _, w := range writers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			for _, n := range []int{16, 24, 32} {
				b := newBox(t)
				w.prepare(t, b)
				before := b.snapshot()
				cmd := exec.Command("/bin/sh",
					append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, n), "sh", bindery,
						"--error-format=json"}, w.args...)...)
				cmd.Dir, cmd.Env = b.dir, b.env
				o := b.finish(cmd)
				label := fmt.Sprintf("%d open files", n)
				switch d := difference(before, b.snapshot()); {
				case o.status == 0 && b.snapshot() != after:
					t.Errorf("%s: status 0, but the result differs:%s", label, difference(after, b.snapshot()))
				case o.status == 1 && (d != "" && !laterFile(w, d) || o.class != local):
					t.Errorf("%s: class %d: %s\nfiles changed:%s", label, o.class, o.message, d)
				case o.status > 1 || o.status < 0:
					t.Errorf("%s: status %d: %s", label, o.status, o.stderr)
				}
				b.noTemp(label)
			}
		})
	}
}

// A signal ends a run in time, with the signal's status and without leftovers.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, w := range writers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			b := newBox(t)
			w.prepare(t, b)
			saved := b.save()
			before := b.snapshot()
			start := time.Now()
			b.accepted(w.args...)
			whole := time.Since(start)
			random := rand.New(rand.NewPCG(2, uint64(len(w.name))))
			for i := range 6 {
				s := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[i%3]
				b.restore(saved)
				cmd := b.command(context.Background(), w.args...)
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = io.Discard, &out
				check(t, cmd.Start())
				delay := 5*time.Millisecond + time.Duration(random.Float64()*float64(whole))
				time.Sleep(delay)
				sent := time.Now()
				_ = cmd.Process.Signal(s) // it may have exited already
				err := cmd.Wait()
				label := fmt.Sprintf("%v after %s", s, delay)
				if took := time.Since(sent); took > 5*time.Second {
					t.Errorf("%s: took %s", label, took)
				}
				got := b.snapshot()
				switch status := cmd.ProcessState.ExitCode(); {
				case err == nil && got == after:
				case status == 128+int(s) && got == before:
				case status == 128+int(s) && laterFile(w, difference(before, got)):
				case status == -1 && (got == before || got == after):
					// The signal came before the handler was installed, or after all was done.
				default:
					t.Errorf("%s: status %d (%v): %s\nfiles changed:%s", label, status, err, out.String(),
						difference(before, got))
				}
				b.noTemp(label)
			}
		})
	}
}
