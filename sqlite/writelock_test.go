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
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// Several programs add a package each, and none is lost.
func TestConcurrentReplace(t *testing.T) {
	path, _ := create(t, simple(nil).Blobs(), sqlite.WriteOptions{})
	var wg sync.WaitGroup
	const each = 4
	for i := range each {
		wg.Go(func() {
			if out, err := job(fmt.Sprintf("add process%d", i), path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		wg.Go(func() {
			_, err := sqlite.Replace(context.Background(), path, sqlite.Options{},
				sqlite.WriteOptions{Wait: time.Minute}, adding(fmt.Sprintf("goroutine%d", i)))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Packages) != 1+2*each {
		t.Errorf("%d packages", len(c.Packages))
	}
	nothingIn(t, filepath.Dir(path), "index.db")
}

func TestConcurrentCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.db")
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			_, results[i] = sqlite.Create(context.Background(), path, manyPackages(strconv.Itoa(i+1)).Blobs(),
				sqlite.WriteOptions{Wait: time.Minute})
		})
	}
	wg.Wait()
	succeeded := map[int]bool{}
	for i, err := range results {
		if succeeded[i+1] = err == nil; err != nil && !errors.Is(err, sqlite.ErrLocked) {
			t.Error(err)
		}
	}
	c, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !succeeded[len(c.Packages)] {
		t.Errorf("the file is that of writer %d, which failed", len(c.Packages))
	}
	nothingIn(t, dir, "index.db")
}

// A program that writes into the file blocks this package's writer, and vice versa.
func TestOtherProgram(t *testing.T) {
	path, _ := create(t, simple(nil).Blobs(), sqlite.WriteOptions{})
	before := fileBytes(t, path)
	cmd := job("hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has exited by then, unless the test failed
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q %v", line, err)
	}
	short := sqlite.WriteOptions{Wait: 50 * time.Millisecond}
	if _, err := sqlite.Create(context.Background(), path, manyPackages("2").Blobs(), short); !errors.Is(err,
		sqlite.ErrLocked) {
		t.Errorf("error %v", err)
	}
	if _, err := sqlite.Replace(context.Background(), path, sqlite.Options{}, short, adding("q")); !errors.Is(err,
		sqlite.ErrLocked) {
		t.Errorf("error %v", err)
	}
	if !bytes.Equal(before, fileBytes(t, path)) {
		t.Error("the file was changed")
	}
	time.AfterFunc(100*time.Millisecond, func() { in.Close() })
	if _, err := sqlite.Replace(context.Background(), path, sqlite.Options{}, sqlite.WriteOptions{Wait: time.Minute},
		func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
			// This process had waited for the other program; now the program has to wait.
			if out, err := job("lock", path).CombinedOutput(); err == nil || !strings.Contains(string(out), "locked") {
				t.Errorf("another program has got the lock: %s", out)
			}
			return adding("q")(ctx, db)
		}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if out, err := job("lock", path).CombinedOutput(); err != nil {
		t.Errorf("the lock is not given up: %v: %s", err, out)
	}
	if c, _, err := read(t, path, sqlite.Options{}); err != nil || len(c.Packages) != 2 {
		t.Errorf("%v %v", c, err)
	}
	nothingIn(t, filepath.Dir(path), "index.db")
}

func TestReplace(t *testing.T) {
	path := recorded.Part(t).Database(t, "small")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before := state(t, filepath.Dir(path))
	replace := func(change func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error)) (*sqlite.Written,
		error) {
		return sqlite.Replace(context.Background(), path, sqlite.Options{Reuse: true}, sqlite.WriteOptions{}, change)
	}
	refusal := errors.New("not this")
	for name, change := range map[string]func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error){
		"no change": func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) { return nil, nil },
		"an error":  func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) { return nil, refusal },
		"a loss": func(context.Context, *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
			return simple(func(c *declcfg.Catalog) { c.Packages[0].Description = "text" }).Blobs(), nil
		},
	} {
		written, err := replace(change)
		if written != nil || (name == "no change") != (err == nil) || name == "an error" && !errors.Is(err, refusal) ||
			name == "a loss" && !errors.Is(err, sqlite.ErrLoss) {
			t.Errorf("%s: %v %v", name, written, err)
		}
		sameState(t, before, state(t, filepath.Dir(path)))
	}
	first, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The manifests are copied one bundle at a time.
	if _, err := replace(func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
		return db.Blobs(ctx), nil
	}); err != nil {
		t.Fatal(err)
	}
	second, _, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sameCatalog(t, first, second)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	nothingIn(t, filepath.Dir(path), filepath.Base(path))
	if _, err := sqlite.Replace(context.Background(), path+"x", sqlite.Options{}, sqlite.WriteOptions{},
		adding("q")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	nothingIn(t, filepath.Dir(path), filepath.Base(path))
}
