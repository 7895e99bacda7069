package catalogdir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/catalogdir"
)

// Files that cannot be changed in place are refused with a reason, and nothing is modified.
func TestRefusedPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string) error
		edit    string
		want    string
	}{
		"a link within the directory": {func(t *testing.T, dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755),
				os.WriteFile(filepath.Join(dir, ".indexignore"), []byte("real\nREADME\n"), 0o644),
				os.Rename(filepath.Join(dir, "b/catalog.yaml"), filepath.Join(dir, "real/b.yaml")),
				os.Symlink("../real/b.yaml", filepath.Join(dir, "b/catalog.yaml")))
		}, "file", `b/catalog.yaml cannot be changed here: it is a link to "../real/b.yaml"`},
		"a link out of the directory": {func(t *testing.T, dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "b/catalog.yaml"), filepath.Join(dir, "../b.yaml")),
				os.Symlink("../../b.yaml", filepath.Join(dir, "b/catalog.yaml")))
		}, "file", "path escapes from parent"},
		"a link to a directory": {func(t *testing.T, dir string) error {
			return os.Symlink("b", filepath.Join(dir, "z"))
		}, "file", "is a directory"},
		"a volume of Kubernetes": {func(t *testing.T, dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "b/..2024"), 0o755),
				os.Rename(filepath.Join(dir, "b/catalog.yaml"), filepath.Join(dir, "b/..2024/catalog.yaml")),
				os.Symlink("..2024", filepath.Join(dir, "b/..data")),
				os.Symlink("..data/catalog.yaml", filepath.Join(dir, "b/catalog.yaml")))
		}, "file", "it is in a volume of Kubernetes"},
		"a new file in a volume of Kubernetes": {func(t *testing.T, dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "..2024"), 0o755),
				os.Symlink("..2024", filepath.Join(dir, "..data")))
		}, "package", "it is in a volume of Kubernetes"},
		"a read-only file": {func(t *testing.T, dir string) error {
			return os.Chmod(filepath.Join(dir, "b/catalog.yaml"), 0o444)
		}, "file", "it is read-only"},
		"a read-only directory": {func(t *testing.T, dir string) error {
			return os.Chmod(filepath.Join(dir, "b"), 0o555)
		}, "file", "its directory b is read-only"},
		"a FIFO": {func(t *testing.T, dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, "b/fifo"), 0o644)
		}, "file", "not a regular file"},
		"a byte order mark": {func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "b/catalog.yaml"), []byte("\xef\xbb\xbf{}"), 0o644)
		}, "file", "byte order mark"},
		"comments only": {func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "b/x.yaml"), []byte("# text\n"), 0o644)
		}, "file", "missing root schema field"},
		"a package whose name is no directory's": {func(t *testing.T, dir string) error { return nil }, "../x",
			`package name "../x" cannot be changed here`},
		"a new package where something else is": {func(t *testing.T, dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, ".indexignore"), []byte("README\nq\n"), 0o644),
				os.Mkdir(filepath.Join(dir, "q"), 0o755))
		}, "q", "q/catalog.json, the file of the new package \"q\", cannot be changed here"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "catalog")
			base(t, dir)
			check(t, c.prepare(t, dir))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "b"), 0o755) })
			files, before := contents(t, filepath.Dir(dir)), state(t, dir)
			err := func() error {
				d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
				if err != nil {
					return err
				}
				defer d.Close()
				catalog, err := d.Load(context.Background(), nil)
				if err != nil {
					return err
				}
				packages := change(catalog, c.edit)
				if _, err := d.Plan(context.Background(), packages, catalog); err == nil {
					t.Error("the plan is not refused")
				}
				_, err = d.Replace(context.Background(), packages, catalog)
				return err
			}()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			sameFiles(t, contents(t, filepath.Dir(dir)), files)
			untouched(t, before, state(t, dir))
		})
	}
}

func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	for name, want := range map[string]string{file: "not a directory", file + "x": "no such file", "": "not exist"} {
		if _, err := catalogdir.Open(context.Background(), name, catalogdir.Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// All kinds of edits work wherever the directory is and whatever its links and modes.
func TestPlacesOfTheDirectory(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) (open string){
		"a relative path": func(t *testing.T, dir string) string {
			t.Chdir(filepath.Dir(dir))
			return "catalog"
		},
		"the working directory": func(t *testing.T, dir string) string {
			t.Chdir(dir)
			return "."
		},
		"a directory below is the working directory": func(t *testing.T, dir string) string {
			t.Chdir(filepath.Join(dir, "a"))
			return "../"
		},
		"a link": func(t *testing.T, dir string) string {
			link := filepath.Join(t.TempDir(), "link")
			check(t, os.Symlink(dir, link))
			return link
		},
		"a mount point": func(t *testing.T, dir string) string {
			check(t, os.Rename(dir, dir+".old"))
			check(t, os.Mkdir(dir, 0o755))
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
				t.Skipf("no file system can be mounted: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			check(t, os.RemoveAll(dir+".old"))
			base(t, dir)
			return dir
		},
		"a mount point of the same file system": func(t *testing.T, dir string) string {
			if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("nothing can be mounted: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			return dir
		},
		"a mount point below": func(t *testing.T, dir string) string {
			sub := filepath.Join(dir, "e")
			if err := syscall.Mount(sub, sub, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("nothing can be mounted: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(sub, syscall.MNT_DETACH) })
			return dir
		},
		"an ignore file below that brings files back": func(t *testing.T, dir string) string {
			check(t, os.WriteFile(filepath.Join(dir, "a/.indexignore"), []byte("!*.json\n"), 0o644))
			return dir
		},
		"read-only files and directories that are not concerned": func(t *testing.T, dir string) string {
			check(t, os.Chmod(filepath.Join(dir, "e/catalog.json"), 0o400))
			check(t, os.Chmod(filepath.Join(dir, "e"), 0o555))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "e"), 0o755) })
			return dir
		},
		"what is ignored may be anything": func(t *testing.T, dir string) string {
			check(t, os.WriteFile(filepath.Join(dir, ".indexignore"), []byte("README\na/odd\n"), 0o644))
			odd := filepath.Join(dir, "a/odd")
			check(t, errors.Join(os.MkdirAll(filepath.Join(odd, "empty"), 0o700),
				syscall.Mkfifo(filepath.Join(odd, "fifo"), 0o600), os.Symlink("nowhere", filepath.Join(odd, "broken")),
				os.Symlink("..", filepath.Join(odd, "loop")),
				os.WriteFile(filepath.Join(odd, "secret"), []byte("x"), 0)))
			return dir
		},
		"a directory of that name is the user's": func(t *testing.T, dir string) string {
			mine := filepath.Join(dir, catalogdir.StagePrefix+"0123456789abcdef")
			check(t, errors.Join(os.Mkdir(mine, 0o755),
				os.WriteFile(filepath.Join(mine, "mine.json"), []byte(`{"schema":"mine"}`), 0o644)))
			return dir
		},
	} {
		for _, change := range []string{"file", "files", "package", "gone", "directory", "all"} {
			t.Run(name+": "+change, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "catalog")
				base(t, dir)
				open := prepare(t, dir)
				c := load(t, open)
				packages := edited(c, change)
				mine := state(t, dir)
				d, err := catalogdir.Open(context.Background(), open, catalogdir.Options{})
				check(t, err)
				defer d.Close()
				result, err := d.Replace(context.Background(), packages, c)
				check(t, err)
				if got, want := text(t, load(t, open)), text(t, c); got != want {
					t.Errorf("the catalog is\n%s\nand not\n%s", got, want)
				}
				untouched(t, mine, state(t, dir), result.Files()...)
				// The same directory can be edited again.
				c.Packages[0].Description = "again"
				_, err = d.Replace(context.Background(), []string{c.Packages[0].Name}, c)
				check(t, err)
				if got, want := text(t, load(t, open)), text(t, c); got != want {
					t.Errorf("the catalog is\n%s\nand not\n%s", got, want)
				}
				check(t, d.Close())
				// An ordinary user cannot read every file there: compare names only.
				check(t, filepath.WalkDir(filepath.Dir(dir), func(name string, _ fs.DirEntry, err error) error {
					if strings.Contains(name, ".bindery") && !strings.Contains(name, "0123456789abcdef") {
						t.Errorf("%s is left", name)
					}
					return err
				}))
			})
		}
	}
}

// prepared applies options from an edit's name.
func prepared(d *catalogdir.Dir, words []string) {
	if slices.Contains(words, "nolinks") {
		d.WithoutLinks()
	}
}

func edited(c *declcfg.Catalog, name string) []string { return change(c, name) }

// An edit by another user, who cannot write next to the directory or in some of its subdirectories.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	top := t.TempDir()
	check(t, os.Chmod(top, 0o755))
	check(t, os.Chmod(filepath.Dir(top), 0o755))
	self := filepath.Join(top, "test")
	data, err := os.ReadFile(os.Args[0])
	check(t, err)
	check(t, os.WriteFile(self, data, 0o755))
	const uid = 65534
	run := func(dir, words string) (string, error) {
		cmd := job(dir, words)
		cmd.Path, cmd.Args = self, []string{self}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	own := func(path string) { check(t, os.Chown(path, uid, uid)) }
	for _, name := range edits {
		words := strings.Fields(name)
		_, now := wanted(t, words[0])
		t.Run(name+": may not write beside it", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "catalog")
			check(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
			check(t, os.Chmod(filepath.Dir(dir), 0o755))
			base(t, dir)
			check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error { own(path); return err }))
			if out, err := run(dir, name); err != nil || text(t, load(t, dir)) != now {
				t.Errorf("%v: %s", err, out)
			}
			nothingLeft(t, dir)
		})
		t.Run(name+": may write, and does not own", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "catalog")
			check(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
			check(t, os.Chmod(filepath.Dir(dir), 0o777))
			base(t, dir)
			check(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
				if e.IsDir() {
					return errors.Join(err, os.Chmod(path, 0o777))
				}
				return errors.Join(err, os.Chmod(path, 0o644))
			}))
			if out, err := run(dir, name); err != nil || text(t, load(t, dir)) != now {
				t.Errorf("%v: %s", err, out)
			}
			nothingLeft(t, dir)
		})
		t.Run(name+": may not write everywhere", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "catalog")
			check(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
			check(t, os.Chmod(filepath.Dir(dir), 0o755))
			base(t, dir)
			own(dir) // but not its content
			before, files := state(t, dir), contents(t, dir)
			out, err := run(dir, name)
			switch {
			case words[0] == "package":
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
			case err == nil:
				if text(t, load(t, dir)) != now {
					t.Error("it has done something else")
				}
			case !strings.Contains(out, "permission denied"):
				t.Errorf("%v: %s", err, out)
			default:
				sameFiles(t, contents(t, dir), files)
				untouched(t, before, state(t, dir))
			}
			nothingLeft(t, dir)
		})
	}
}

// Unchanged files and directories keep mode, owner and times; changed files keep mode and owner.
func TestModesAndOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	check(t, os.Chmod(filepath.Join(dir, "b/catalog.yaml"), 0o640))
	check(t, os.Chmod(filepath.Join(dir, "a/package.json"), 0o600))
	check(t, os.Chmod(filepath.Join(dir, "e"), 0o2750|os.ModeSetgid))
	old := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	check(t, os.Chtimes(filepath.Join(dir, "e"), old, old))
	if os.Getuid() == 0 {
		check(t, os.Chown(filepath.Join(dir, "b/catalog.yaml"), 12, 34))
		check(t, os.Chown(filepath.Join(dir, "e"), 56, 78))
		check(t, os.Chmod(filepath.Join(dir, "e"), 0o750|os.ModeSetgid))
	}
	stat := func(name string) string {
		info, err := os.Lstat(filepath.Join(dir, name))
		check(t, err)
		st := info.Sys().(*syscall.Stat_t)
		return fmt.Sprint(info.Mode(), st.Uid, st.Gid)
	}
	names := []string{".", "a", "b", "e", "b/catalog.yaml", "a/package.json"}
	var before []string
	for _, name := range names {
		before = append(before, stat(name))
	}
	_, err := edit(t, dir, []string{"a", "b", "c", "d"}, func(c *declcfg.Catalog) { change(c, "all") })
	check(t, err)
	for i, name := range names {
		if got := stat(name); got != before[i] {
			t.Errorf("%s: got %s, was %s", name, got, before[i])
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "e")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the time of a directory that was not changed is %v, %v", info.ModTime(), err)
	}
}

// Other hard links of a changed file keep the old content.
func TestHardLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	file, other := filepath.Join(dir, "b/catalog.yaml"), filepath.Join(dir, "../other")
	check(t, os.Link(file, other))
	was, err := os.ReadFile(other)
	check(t, err)
	_, err = edit(t, dir, []string{"b"}, func(c *declcfg.Catalog) { change(c, "file") })
	check(t, err)
	if now, err := os.ReadFile(other); err != nil || string(now) != string(was) {
		t.Errorf("%q, %v", now, err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) == string(was) {
		t.Errorf("%q, %v", now, err)
	}
}

// A tree may be deeper than the system's maximum path length.
func TestDeepDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	root, err := os.OpenRoot(dir)
	check(t, err)
	defer root.Close()
	deep := strings.Repeat(strings.Repeat("d", 200)+"/", 30)
	check(t, root.MkdirAll(deep, 0o755))
	check(t, root.WriteFile(deep+"f.json", []byte(strings.ReplaceAll(pkgB, "b", "f")), 0o644))
	check(t, root.WriteFile(deep+"bundles.json", []byte(newBundle("f", "1.0.0")), 0o644))
	for _, noLinks := range []bool{false, true} {
		c := load(t, dir)
		for i := range c.Packages {
			if name := c.Packages[i].Name; name == "f" || name == "b" {
				c.Packages[i].Description += "new"
			}
		}
		c.Bundles = slices.DeleteFunc(c.Bundles, func(b declcfg.Bundle) bool { return b.Package == "f" })
		if noLinks {
			c.Append(parse(t, newBundle("f", "2.0.0")))
		}
		_, err = replace(t, dir, []string{"b", "f"}, c, noLinks)
		check(t, err)
		if got, want := text(t, load(t, dir)), text(t, c); got != want {
			t.Errorf("the catalog is\n%s\nand not\n%s", got, want)
		}
	}
	if names, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
}

// Changes by a program that ignores the lock are not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	for _, name := range edits {
		words := strings.Fields(name)
		for _, at := range []string{"load", "stage", "written", "journal"} {
			for what, file := range map[string]string{"changed": "b/catalog.yaml", "replaced": "a/package.json",
				"new": "a/new.json", "removed": "a/channels.json"} {
				t.Run(strings.Join([]string{name, at, what}, " "), func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "catalog")
					base(t, dir)
					path := filepath.Join(dir, file)
					const theirs = `{"schema":"theirs"}`
					meddle := func() {
						switch what {
						case "removed":
							check(t, os.Remove(path))
						case "replaced":
							check(t, os.WriteFile(path+".tmp", []byte(theirs), 0o644))
							check(t, os.Rename(path+".tmp", path))
						default:
							check(t, os.WriteFile(path, []byte(theirs), 0o644))
						}
					}
					d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
					check(t, err)
					defer d.Close()
					prepared(d, words)
					c, err := d.Load(context.Background(), nil)
					check(t, err)
					done := at == "load"
					if done {
						meddle()
					}
					d.AtStep(func(step string) {
						if step == at && !done {
							done = true
							meddle()
						}
					})
					files := contents(t, dir)
					_, err = d.Replace(context.Background(), change(c, words[0]), c)
					if err != nil && !errors.Is(err, catalogdir.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
						t.Errorf("got %v", err)
					}
					check(t, d.Close())
					data, readErr := os.ReadFile(path)
					switch {
					case !done: // there is no such step
					case what == "removed" && errors.Is(readErr, os.ErrNotExist):
					case what != "removed" && string(data) == theirs:
					case err == nil && what == "removed":
						t.Errorf("it is there again, and nobody was told")
					default:
						t.Errorf("%v: it holds %q, %v", err, data, readErr)
					}
					if err != nil {
						now := contents(t, dir)
						delete(now, file)
						delete(files, file)
						sameFiles(t, now, files)
					}
					nothingLeft(t, dir)
				})
			}
		}
	}
}

// An edit waits for another one, up to the timeout.
func TestWaiting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	first, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	check(t, err)
	if _, err := catalogdir.Open(context.Background(), dir,
		catalogdir.Options{Wait: 50 * time.Millisecond}); !errors.Is(err, catalogdir.ErrLocked) ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := catalogdir.Open(ctx, dir, catalogdir.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{Wait: time.Minute})
		if err == nil {
			var c *declcfg.Catalog
			if c, err = second.Load(context.Background(), nil); err == nil && len(c.Packages) != 4 {
				err = fmt.Errorf("%d packages", len(c.Packages))
			}
			err = errors.Join(err, second.Close())
		}
		got <- err
	}()
	c, err := first.Load(context.Background(), nil)
	check(t, err)
	_, err = first.Replace(context.Background(), change(c, "all"), c)
	check(t, err)
	check(t, first.Close())
	check(t, <-got)
}

// An edit that is cancelled at any step changes nothing.
func TestCancelled(t *testing.T) {
	for _, name := range edits {
		words := strings.Fields(name)
		for step := 0; ; step++ {
			dir := filepath.Join(t.TempDir(), "catalog")
			base(t, dir)
			before, files := state(t, dir), contents(t, filepath.Dir(dir))
			ctx, cancel := context.WithCancel(context.Background())
			d, err := catalogdir.Open(ctx, dir, catalogdir.Options{})
			check(t, err)
			prepared(d, words)
			c, err := d.Load(ctx, nil)
			check(t, err)
			n := step
			d.AtStep(func(string) {
				if n--; n < 0 {
					cancel()
				}
			})
			want := *c
			_, err = d.Replace(ctx, change(&want, words[0]), &want)
			cancel()
			check(t, d.Close())
			if err == nil {
				if got := text(t, load(t, dir)); got != text(t, &want) {
					t.Errorf("%s, step %d: the catalog is\n%s", name, step, got)
				}
				if n >= 0 {
					break
				}
				continue // cancelled after the last file was in place
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, step %d: %v", name, step, err)
			}
			sameFiles(t, contents(t, filepath.Dir(dir)), files)
			untouched(t, before, state(t, dir))
		}
	}
}

// On a full disk the error names the cause.
func TestNoSpaceLeft(t *testing.T) {
	for _, name := range []string{"file", "files", "all", "all nolinks"} {
		top := t.TempDir()
		if err := syscall.Mount("tmpfs", top, "tmpfs", 0, "size=100k"); err != nil {
			t.Skipf("no small file system can be mounted (%v); TestFullDisk limits files instead", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(top, syscall.MNT_DETACH) })
		dir := filepath.Join(top, "catalog")
		base(t, dir)
		var room syscall.Statfs_t
		check(t, syscall.Statfs(top, &room))
		check(t, os.WriteFile(filepath.Join(top, "filler"), make([]byte, (room.Bavail-2)*uint64(room.Bsize)), 0o644))
		before := state(t, top)
		words := strings.Fields(name)
		d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
		check(t, err)
		prepared(d, words)
		c, err := d.Load(context.Background(), nil)
		check(t, err)
		_, err = d.Replace(context.Background(), change(c, words[0]), c)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, d.Close())
		untouched(t, before, state(t, top))
		nothingLeft(t, dir, name)
	}
}

// Readers of the catalog do not see the temporary files of a running or killed edit.
func TestStageIsInvisible(t *testing.T) {
	for _, name := range edits {
		dir := filepath.Join(t.TempDir(), "catalog")
		base(t, dir)
		d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
		check(t, err)
		prepared(d, strings.Fields(name))
		c, err := d.Load(context.Background(), nil)
		check(t, err)
		fsys, err := declcfg.OpenDir(dir)
		check(t, err)
		was, err := declcfg.Files(fsys)
		check(t, err)
		d.AtStep(func(step string) {
			files, err := declcfg.Files(fsys)
			for _, f := range files {
				if strings.Contains(f, ".bindery") {
					t.Errorf("%s, %s: %s is seen", name, step, f)
				}
			}
			if err != nil || (step == "stage" || step == "written" || step == "journal") && !slices.Equal(files, was) {
				t.Errorf("%s, %s: %v, %v", name, step, files, err)
			}
		})
		_, err = d.Replace(context.Background(), change(c, strings.Fields(name)[0]), c)
		check(t, err)
		check(t, d.Close())
	}
}

// A read-only open removes nothing, and reports an interrupted edit.
func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	old, _ := wanted(t, "all")
	if _, err := job(dir, "all", "die=9").CombinedOutput(); err == nil {
		t.Fatal("it was not killed")
	}
	files := contents(t, dir)
	if _, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{ReadOnly: true}); err == nil ||
		!strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
	if _, err := declcfg.OpenDir(dir); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("a reader got %v", err)
	}
	sameFiles(t, contents(t, dir), files)
	d, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{})
	check(t, err)
	check(t, d.Close())
	d, err = catalogdir.Open(context.Background(), dir, catalogdir.Options{ReadOnly: true})
	check(t, err)
	c, err := d.Load(context.Background(), nil)
	check(t, err)
	if text(t, c) != old {
		t.Error("the interrupted edit was not undone")
	}
	packages := change(c, "all")
	result, err := d.Plan(context.Background(), packages, c)
	if err != nil || len(result.Changed) != 2 || len(result.Created) != 2 || len(result.Removed) != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := d.Replace(context.Background(), packages, c); err == nil {
		t.Error("it has written")
	}
	check(t, d.Close())
}

// Rolling back an interrupted edit does not overwrite files that were changed since.
func TestChangedBeforeUndoing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	if _, err := job(dir, "all", "die=99").CombinedOutput(); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "catalog")
	base(t, dir)
	for step := range 30 {
		if out, err := job(dir, "all", fmt.Sprintf("die=%d", step)).CombinedOutput(); err == nil {
			t.Fatalf("%s", out)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "b/catalog.yaml")); err != nil || strings.Contains(string(data),
			"new text") {
			check(t, err)
			break
		}
	}
	check(t, os.WriteFile(filepath.Join(dir, "b/catalog.yaml"), []byte("mine"), 0o644))
	if _, err := catalogdir.Open(context.Background(), dir, catalogdir.Options{}); !errors.Is(err,
		catalogdir.ErrChanged) || !strings.Contains(err.Error(), "b/catalog.yaml") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "b/catalog.yaml")); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
}
