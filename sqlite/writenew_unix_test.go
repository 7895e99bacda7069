//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Of several processes that create a database at the same path, one creates it and the others wait and change it. The
// directory itself is not locked meanwhile, and has no other files afterwards, even if a process was killed before.
func TestReplaceNewAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.db")
	if err := os.WriteFile(filepath.Join(dir, ".index.db.bindery-new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	made := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := sqlite.Replace(context.Background(), path, sqlite.Options{}, sqlite.WriteOptions{New: true},
				func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
					if db != nil {
						return (&declcfg.Catalog{}).Blobs(), nil
					}
					mu.Lock()
					made++
					mu.Unlock()
					d, err := os.Open(dir)
					if err != nil {
						return nil, err
					}
					defer d.Close()
					if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
						t.Errorf("the directory is locked: %v", err)
					}
					return (&declcfg.Catalog{}).Blobs(), nil
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("the database was made %d times", made)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// The new file keeps the owner and mode of the old one.
func TestReplaceKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path, _ := create(t, simple(nil).Blobs(), sqlite.WriteOptions{})
	if err := errors.Join(os.Chown(path, 1234, 4321), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Replace(context.Background(), path, sqlite.Options{}, sqlite.WriteOptions{},
		adding("q")); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Create(context.Background(), path, manyPackages("2").Blobs(),
		sqlite.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	of := info.Sys().(*syscall.Stat_t)
	if of.Uid != 1234 || of.Gid != 4321 || info.Mode().Perm() != 0o640 {
		t.Errorf("owner %d:%d, mode %v", of.Uid, of.Gid, info.Mode())
	}
}
