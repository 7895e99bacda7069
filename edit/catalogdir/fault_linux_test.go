package catalogdir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

// TestMain runs a job instead of the tests if the environment says so.
func TestMain(m *testing.M) {
	if job := os.Getenv("CATALOGDIR_TEST_JOB"); job != "" {
		if err := runJob(strings.Fields(job), os.Getenv("CATALOGDIR_TEST_DIR")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println("done", peakMemory())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peakMemory returns the peak memory of this process in MB. The peak that the system reports for an exited child may be
// that of its parent.
func peakMemory() int {
	data, _ := os.ReadFile("/proc/self/status") // on failure the result is 0, which the test rejects
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	var kilobytes int
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes >> 10
}

// job returns a command that runs this test program as a job. The words are the name of an edit and options:
//
//	nolinks    simulate a file system without hard links
//	die=N      kill the process at that step
//	limit=N    limit the size of files in bytes
//	skeleton   load skeletons only
func job(dir string, words ...string) *osexec.Cmd {
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CATALOGDIR_TEST_JOB="+strings.Join(words, " "), "CATALOGDIR_TEST_DIR="+dir)
	return cmd
}

func runJob(words []string, dir string) error {
	runtime.LockOSThread() // strace counts the system calls of each thread
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	var whole func(string) bool
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi("0" + value)
		if err != nil {
			return err
		}
		switch name {
		case "nolinks":
			d.WithoutLinks()
		case "skeleton":
			whole = func(string) bool { return false }
		case "die":
			d.AtStep(func(string) {
				if n--; n < 0 {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
			})
		case "limit":
			signal.Ignore(syscall.SIGXFSZ)
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE,
				&syscall.Rlimit{Cur: uint64(n), Max: uint64(n)}); err != nil {
				return err
			}
		default:
			return fmt.Errorf("no option %q", word)
		}
	}
	c, err := d.Load(context.Background(), whole)
	if err != nil {
		return err
	}
	if _, err := d.Replace(context.Background(), change(c, words[0]), c); err != nil {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}

// change applies one of the named edits and returns the changed packages.
func change(c *declcfg.Catalog, name string) []string {
	drop := func(pkg string) {
		c.Packages = slices.DeleteFunc(c.Packages, func(p declcfg.Package) bool { return p.Name == pkg })
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return b.Package == pkg })
		c.Channels = slices.DeleteFunc(c.Channels, func(ch declcfg.Channel) bool { return ch.Package == pkg })
	}
	bundle := func(pkg, v string) {
		c.Bundles = append(c.Bundles,
			declcfg.Bundle{Name: pkg + ".v" + v, Package: pkg, Image: "r/x:" + v, Properties: []declcfg.Property{
				{Type: declcfg.PropertyPackage, Value: []byte(`{"packageName":"` + pkg + `","version":"` + v + `"}`)}}})
	}
	describe := func(pkg string) {
		for i := range c.Packages {
			if c.Packages[i].Name == pkg {
				c.Packages[i].Description = strings.Repeat("new text ", 1000)
			}
		}
	}
	switch name {
	case "file": // one file changes
		describe("b")
		return []string{"b"}
	case "files": // files of one directory change, come and go
		describe("a")
		bundle("a", "2.0.0")
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return b.Name == "a.v1.0.0" })
		return []string{"a"}
	case "package": // a directory comes
		c.Packages = append(c.Packages, declcfg.Package{Name: "d"})
		bundle("d", "1.0.0")
		return []string{"d"}
	case "gone": // files go from a directory
		drop("a")
		return []string{"a"}
	case "directory": // a directory goes, with all that is in it
		drop("c")
		return []string{"c"}
	case "p000": // a package with much in it changes
		describe("p000")
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return b.Name == "p000.v1.0.3" })
		return []string{"p000"}
	case "all":
		drop("c")
		describe("b")
		return append(append(change(c, "files"), change(c, "package")...), "b", "c")
	}
	c.Packages = append(c.Packages, declcfg.Package{Name: name})
	return []string{name}
}

func base(t testing.TB, dir string) {
	yaml := "---\n# the package\nschema: olm.package\nname: b\ndefaultChannel: x\n"
	write(t, dir, map[string]string{
		"a/package.json": pkgA, "a/channels.json": chA, "a/bundles/v1.0.0.json": buA1,
		"a/bundles/v1.1.0.json": newBundle("a", "1.1.0"),
		"b/catalog.yaml":        yaml, "c/x/catalog.json": strings.ReplaceAll(pkgB, "b", "c"),
		".indexignore": "README\n",
		"README":       "mine", "a/README": "mine", "e/catalog.json": strings.ReplaceAll(pkgB, "b", "e"),
	})
}

// wanted returns the catalogs before and after an edit as text.
func wanted(t testing.TB, name string) (old, now string) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	c := load(t, dir)
	old = text(t, c)
	change(c, name)
	return old, text(t, c)
}

// files returns the files before and after an edit.
func files(t testing.TB, name string) (old, now map[string]string) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	old = contents(t, dir)
	if out, err := job(dir, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return old, contents(t, dir)
}

// nothingLeft checks that there are no temporary files in or next to a directory.
func nothingLeft(t testing.TB, dir string, what ...any) {
	t.Helper()
	for name := range contents(t, filepath.Dir(dir)) {
		if strings.Contains(name, ".bindery") || strings.HasSuffix(name, "/") && name != "catalog/" {
			t.Errorf("%v: %s is left", what, name)
		}
	}
}

var edits = []string{"file", "files", "package", "gone", "directory", "all", "files nolinks", "all nolinks",
	"file nolinks"}

// readable checks what a reader gets after an edit was killed: the old catalog, the new one, or an error if only some
// of the files are in place.
func readable(t testing.TB, dir, old, now string, what ...any) {
	t.Helper()
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		if !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%v: %v", what, err)
		}
		return
	}
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Errorf("%v: %v", what, err)
	} else if got := text(t, c); got != old && got != now {
		t.Errorf("%v: the catalog is neither the old one nor the new one:\n%s", what, got)
	}
}

// whole checks that every file of the catalog is completely old or completely new.
func whole(t testing.TB, dir string, old, now map[string]string) {
	t.Helper()
	for name, text := range contents(t, dir) {
		if !strings.HasPrefix(name, catalogdir.StagePrefix) && !strings.HasSuffix(name,
			"/") && text != old[name] && text != now[name] {
			t.Errorf("%s is neither the old file nor the new one", name)
		}
	}
}

// After a kill at any step every file is old or new. A reader gets the old catalog, the new one, or an error; the next
// edit starts from the old or the new catalog and removes the leftovers.
func TestKilled(t *testing.T) {
	for _, name := range edits {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(name)
			old, now := wanted(t, words[0])
			oldFiles, newFiles := files(t, words[0])
			seen := map[string]int{}
			for step := 0; ; step++ {
				dir := filepath.Join(t.TempDir(), "catalog")
				base(t, dir)
				before := state(t, dir)
				out, err := job(dir, append(words, fmt.Sprintf("die=%d", step))...).CombinedOutput()
				if err == nil {
					if text(t, load(t, dir)) != now {
						t.Error("finished, and the catalog is not the new one")
					}
					break
				}
				if len(out) > 0 {
					t.Fatalf("step %d: %v: %s", step, err, out)
				}
				readable(t, dir, old, now, "killed at step", step)
				if words[0] == "file" {
					load(t, dir) // replacing a single file is atomic, so readers are never refused
				}
				whole(t, dir, oldFiles, newFiles)
				d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
				check(t, err)
				check(t, d.Close())
				switch text(t, load(t, dir)) {
				case old:
					seen["old"]++
					untouched(t, before, state(t, dir))
				case now:
					seen["new"]++
				default:
					t.Errorf("killed at step %d, next edit: the catalog is neither the old one nor the new one", step)
				}
				nothingLeft(t, dir, "step", step)
			}
			if seen["old"] < 2 || seen["new"] == 0 {
				t.Errorf("killed %d times with the old catalog, and %d times with the new one", seen["old"],
					seen["new"])
			}
		})
	}
}

// A reader that starts while files are being renamed waits until all are in place.
func TestReaderDuringEdit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	_, now := wanted(t, "all")
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	check(t, err)
	c, err := d.Load(context.Background(), nil)
	check(t, err)
	got := make(chan string, 1)
	started := false
	d.AtStep(func(step string) {
		if step == "move" && !started {
			started = true
			go func() {
				fsys, err := declcfg.OpenDir(dir)
				if err != nil {
					got <- err.Error()
					return
				}
				c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
				if err != nil {
					got <- err.Error()
					return
				}
				got <- text(t, c)
			}()
		}
		if step == "move" && len(got) > 0 {
			t.Error("it has not waited")
		}
	})
	_, err = d.Replace(context.Background(), change(c, "all"), c)
	check(t, err)
	check(t, d.Close())
	if got := <-got; got != now {
		t.Errorf("got %s", got)
	}
}

// The same, with a kill or failure at every system call that changes something.
func TestSystemCalls(t *testing.T) {
	strace := canTrace(t)
	calls := map[string][]string{"all": {"renameat", "fsync"}, "files": {"linkat"}}
	step := 2
	if os.Getenv("BINDERY_ALL_CALLS") != "" { // takes minutes
		step = 1
		for _, name := range edits {
			calls[name] = []string{"renameat", "linkat", "mkdirat", "unlinkat", "fsync", "fchmod", "write"}
		}
	}
	for name, calls := range calls {
		for _, call := range calls {
			for _, fault := range []string{"signal=KILL", "error=EIO"} {
				t.Run(name+" "+call+" "+fault, func(t *testing.T) {
					words := strings.Fields(name)
					old, now := wanted(t, words[0])
					for n := 1; n < 40; n += step {
						dir := filepath.Join(t.TempDir(), "catalog")
						base(t, dir)
						out, err := traced(strace, job(dir, words...),
							fmt.Sprintf("inject=%s:%s:when=%d", call, fault, n)).CombinedOutput()
						finished := err == nil
						failed := strings.HasPrefix(string(out), "error:")
						readable(t, dir, old, now, "call", n)
						if finished || failed {
							// Without a hard link to the old file, a file stays replaced if syncing its directory
							// fails.
							replaced := name == "file nolinks" && call == "fsync"
							if got := text(t, load(t, dir)); finished && got != now ||
								failed && got != old && !replaced {
								t.Errorf("call %d: %v: %s\nthe catalog is\n%s", n, err, out, got)
							}
						}
						d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
						check(t, err)
						check(t, d.Close())
						if got := text(t, load(t, dir)); got != old && got != now {
							t.Errorf("call %d, next edit: the catalog is\n%s", n, got)
						}
						nothingLeft(t, dir, "call", n, string(out))
						if finished && fault == "signal=KILL" || finished && n > 12 {
							break // there are no more such calls
						}
					}
				})
			}
		}
	}
}

// Edits work on file systems without hard links.
func TestWithoutLinks(t *testing.T) {
	strace := canTrace(t)
	for _, name := range edits {
		words := strings.Fields(name)
		_, now := wanted(t, words[0])
		dir := filepath.Join(t.TempDir(), "catalog")
		base(t, dir)
		before := state(t, dir)
		if out, err := traced(strace, job(dir, words...), "inject=linkat:error=EPERM").CombinedOutput(); err != nil ||
			text(t, load(t, dir)) != now {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		untouched(t, before, state(t, dir), "a/package.json", "a/bundles/v1.0.0.json", "a/channels.json",
			"a/bundles/v1.1.0.json", "a/README", "b/catalog.yaml", "c/x/catalog.json")
		nothingLeft(t, dir, name)
	}
}

// canTrace returns the path of strace.
func canTrace(t *testing.T) string {
	strace, err := osexec.LookPath("strace")
	if err == nil {
		err = osexec.Command(strace, "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		t.Skipf(
			"strace cannot be used here (%v); TestKilled and TestFullDisk kill at chosen steps and limit files instead",
			err)
	}
	return strace
}

// traced runs a program with strace, which injects failing system calls.
func traced(strace string, cmd *osexec.Cmd, inject string) *osexec.Cmd {
	cmd.Args = []string{strace, "-f", "-qq", "-o", os.DevNull, "-e", inject, cmd.Path}
	cmd.Path = strace
	return cmd
}

// If the disk is full at any point, the old files stay and no temporary file is left.
func TestFullDisk(t *testing.T) {
	for _, name := range edits {
		words := strings.Fields(name)
		for _, room := range []int{0, 10, 100, 1000} {
			dir := filepath.Join(t.TempDir(), "catalog")
			base(t, dir)
			before, files := state(t, dir), contents(t, filepath.Dir(dir))
			out, err := job(dir, append(words, fmt.Sprintf("limit=%d", room))...).CombinedOutput()
			small := words[0] == "package" || words[0] == "gone" || words[0] == "directory"
			if err == nil && !small || err != nil && !strings.Contains(string(out), "file too large") {
				t.Errorf("%s, %d bytes of room: %v: %s", name, room, err, out)
			}
			if err != nil {
				untouched(t, before, state(t, dir))
				sameFiles(t, contents(t, filepath.Dir(dir)), files)
			}
		}
	}
}

// Each of several concurrent edits sees the results of those before it, with hard links or without.
func TestConcurrentEdits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	var wg sync.WaitGroup
	const each = 6
	for i := range each {
		wg.Go(func() {
			words := []string{fmt.Sprintf("process%d", i)}
			if i%2 == 0 {
				words = append(words, "nolinks")
			}
			if out, err := job(dir, words...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		wg.Go(func() {
			d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{Wait: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			c, err := d.Load(context.Background(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			packages := change(c, fmt.Sprintf("goroutine%d", i))
			for j := range c.Packages {
				if c.Packages[j].Name == "b" || c.Packages[j].Name == "a" {
					c.Packages[j].Description += "x" // so that several files change
				}
			}
			if _, err := d.Replace(context.Background(), append(packages, "a", "b"), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c := load(t, dir)
	if len(c.Packages) != 4+2*each {
		t.Errorf("%d packages", len(c.Packages))
	}
	for _, p := range c.Packages {
		if (p.Name == "a" || p.Name == "b") && p.Description != strings.Repeat("x", each) {
			t.Errorf("%s: %q", p.Name, p.Description)
		}
	}
	nothingLeft(t, dir)
}
