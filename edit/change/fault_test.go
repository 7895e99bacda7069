package change_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/catalogdir"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// state describes everything about the files below a directory that a failed edit must not change.
func state(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rest := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			rest = fmt.Sprintf("%x %s", sha256.Sum256(data), info.ModTime())
		}
		_, err = fmt.Fprintln(&out, strings.TrimPrefix(name, dir), info.Mode(), rest)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// forms returns a recorded database and the directory migrated from it, each in a separate directory.
func forms(t testing.TB, name string) [2]string {
	t.Helper()
	path := recorded.Part(t).Database(t, name)
	return [2]string{path, migrated(t, path)}
}

func noLoss(err error) bool { return err != nil && !errors.Is(err, sqlite.ErrLoss) }

// A failed edit changes nothing: content, times and other files of the directory stay.
func TestFailedEditsChangeNothing(t *testing.T) {
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(context.Background())
	defer cancel()
	for what, c := range map[string]struct {
		e     change.Edit
		o     change.Options
		ctx   context.Context
		which func(error) bool
	}{
		"the edit fails": {e: pure(func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return nil, nil,
				broken
		}),
			which: func(err error) bool { return errors.Is(err, broken) }},
		"a package is not there": {e: pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Remove(c, []string{"nothing"}, edit.RemoveOptions{})
		}), which: func(err error) bool { return errors.Is(err, edit.ErrNotFound) }},
		"a bundle is there already": {e: adding(
			[]edit.Addition{edittest.RecordedAddition(t, edittest.Registry+"community/etcd:v0.9.4")},
			edit.AddOptions{}),
			which: func(err error) bool { return errors.Is(err, edit.ErrVersionExists) }},
		"it is cancelled": {e: pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			cancel()
			return edit.Prune(c, nil)
		}), ctx: cancelled, which: func(err error) bool { return errors.Is(err, context.Canceled) }},
		"a bundle loses its manifests": {e: pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			out := *c
			out.Bundles = append([]declcfg.Bundle(nil), c.Bundles...)
			out.Bundles[0].Name += "-renamed"
			return &out, &edit.Account{}, nil
		}), which: noLoss},
		"it is a dry run": {e: removalOf("etcd"), o: change.Options{DryRun: true},
			which: func(err error) bool { return err == nil }},
		"nothing changes": {e: removalOf("nothing"), which: func(err error) bool { return err == nil }},
	} {
		t.Run(what, func(t *testing.T) {
			for _, at := range forms(t, "small") {
				before := state(t, filepath.Dir(at))
				ctx := c.ctx
				if ctx == nil {
					ctx = context.Background()
				}
				r, err := c.e.InPlace(ctx, at, c.o)
				if !c.which(err) || (err == nil) != (r != nil) {
					t.Errorf("%s: %v, %+v", at, err, r)
				}
				if err == nil && r.Unchanged == c.o.DryRun {
					t.Errorf("%s: %+v", at, r)
				}
				if c.o.DryRun && r.Kind == change.Directory && len(r.Files) == 0 ||
					c.o.DryRun && r.Kind == change.Database && r.Written == nil {
					t.Errorf("%s: the dry run does not tell what would be written: %+v", at, r)
				}
				if after := state(t, filepath.Dir(at)); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
			}
		})
	}
}

// An edit whose result a database cannot represent is refused, also in a dry run, unless losses are accepted; a
// directory accepts it.
func TestLosses(t *testing.T) {
	mark := pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.MarkDeprecated(c, []edit.Mark{{Package: "etcd", Message: "old"}})
	})
	at := forms(t, "small")
	for _, dry := range []bool{true, false} {
		before := state(t, filepath.Dir(at[0]))
		if _, err := mark.InPlace(context.Background(), at[0], change.Options{DryRun: dry}); !errors.Is(err,
			sqlite.ErrLoss) {
			t.Errorf("got %v", err)
		}
		if after := state(t, filepath.Dir(at[0])); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	r, err := mark.InPlace(context.Background(), at[0], change.Options{Lossy: true})
	if err != nil || len(r.Written.Findings) != 1 || r.Written.Findings[0].Kind != sqlite.Lost {
		t.Errorf("got %v, %+v", err, r)
	}
	if _, err := mark.InPlace(context.Background(), at[1], change.Options{}); err != nil ||
		len(read(t, at[1]).Deprecations) != 1 {
		t.Errorf("got %v", err)
	}
}

// A path without a catalog is refused and left unchanged.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	e := adding(edittest.Additions(t, "p 1.0.0 @a"), edit.AddOptions{})
	text, nothing := write("text", "no database"), write("empty", "")
	for _, c := range []struct {
		path   string
		create bool
		want   error
	}{
		{text, false, change.ErrNoCatalog}, {text, true, change.ErrNoCatalog},
		{nothing, false, change.ErrNoCatalog},
		{link, false, fs.ErrNotExist}, {link, true, fs.ErrNotExist},
		{filepath.Join(dir, "absent"), false, fs.ErrNotExist},
		{filepath.Join(dir, "absent", "index.db"), true, fs.ErrNotExist},
	} {
		before := state(t, dir)
		if _, err := e.InPlace(context.Background(), c.path, change.Options{Create: c.create}); !errors.Is(err,
			c.want) {
			t.Errorf("%s: got %v", c.path, err)
		}
		if after := state(t, dir); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", c.path, before, after)
		}
	}
	// An empty file can become a database, and symbolic links are followed.
	if err := os.Symlink(nothing, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.InPlace(context.Background(), filepath.Join(dir, "link"),
		change.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	if got := edittest.Show(read(t, nothing)); got != "p = a\np/a: 1.0.0" {
		t.Error(got)
	}
	// A failed edit of a missing path creates nothing.
	for _, kind := range kinds {
		before := state(t, dir)
		_, err := pure(func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			return nil, nil, errors.New("broken")
		}).InPlace(context.Background(), filepath.Join(dir, "new"),
			change.Options{Create: true, New: kind})
		if err == nil {
			t.Error("no error")
		}
		if after := state(t, dir); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
}

// All concurrent edits succeed, whether the catalog exists or not; one with a short timeout fails.
func TestEditsAtOnce(t *testing.T) {
	for _, kind := range kinds {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", kind, there), func(t *testing.T) {
				at := filepath.Join(t.TempDir(), "catalog")
				if there {
					if _, err := inPlace(at, kind,
						adding(edittest.Additions(t, "p 1.0.0 @a"), edit.AddOptions{})); err != nil {
						t.Fatal(err)
					}
				}
				var wg sync.WaitGroup
				const edits = 6
				for n := range edits {
					wg.Go(func() {
						e := adding(edittest.Additions(t, fmt.Sprintf("q%d 1.0.0 @a", n)), edit.AddOptions{})
						if _, err := e.InPlace(context.Background(), at,
							change.Options{Create: true, New: kind, Wait: time.Minute}); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if c := read(t, at); strings.Count(edittest.Show(c), " = a") != edits+map[bool]int{true: 1}[there] {
					t.Error(edittest.Show(c))
				}
				entries, err := os.ReadDir(filepath.Dir(at))
				if err != nil || len(entries) != 1 {
					t.Errorf("%v, %v", entries, err)
				}
			})
		}
		t.Run(string(kind)+" that is being edited", func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "catalog")
			if _, err := inPlace(at, kind, adding(edittest.Additions(t, "p 1.0.0 @a"), edit.AddOptions{})); err != nil {
				t.Fatal(err)
			}
			outer := pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
				_, err := removalOf("p").InPlace(context.Background(), at,
					change.Options{Wait: 50 * time.Millisecond})
				if !errors.Is(err, sqlite.ErrLocked) && !errors.Is(err, catalogdir.ErrLocked) {
					t.Errorf("got %v", err)
				}
				return edit.Prune(c, nil)
			})
			if _, err := inPlace(at, kind, outer); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An edit that is killed at any moment leaves the old or the new catalog, and the next edit removes the leftovers.
func TestKilledEdits(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be replaced there")
	}
	for i, at := range forms(t, "medium") {
		t.Run(string(kinds[i]), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 6))
			start := time.Now()
			if out, err := job(at, "touch", "prometheus").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			takes := time.Since(start)
			listing := names(t, at)
			killed, finished := 0, 0
			for n := range 6 {
				version := fmt.Sprintf("1.%d.0", n)
				before := edittest.Show(read(t, at))
				cmd := job(at, "add", "new-package", version)
				var out bytes.Buffer
				cmd.Stdout = &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(time.Duration(r.Int64N(int64(takes))), func() { _ = cmd.Process.Kill() })
				err := cmd.Wait()
				timer.Stop()
				after := edittest.Show(read(t, at))
				switch {
				case err == nil:
					finished++
					if !strings.Contains(after, version) {
						t.Errorf("the edit was done and is not there:\n%s", after)
					}
				case out.Len() > 0:
					t.Fatal(out.String())
				default:
					killed++
					if after != before && !strings.Contains(after, version) {
						t.Errorf("before:\n%s\nafter:\n%s", before, after)
					}
				}
			}
			t.Logf("%d killed, %d finished", killed, finished)
			if killed == 0 {
				t.Error("nothing was killed")
			}
			// The next edits are not blocked by leftovers and remove them.
			for _, verb := range [][]string{{"add", "last", "1.0.0"}, {"rm", "last", "new-package"}} {
				if out, err := job(at, verb...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if got := names(t, at); got != listing {
				t.Errorf("before:\n%s\nafter:\n%s", listing, got)
			}
		})
	}
}

// names lists a path and the other names in its directory.
func names(t testing.TB, at string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(filepath.Dir(at), func(name string, _ fs.DirEntry, err error) error {
		out.WriteString(name + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
