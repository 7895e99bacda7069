//go:build linux

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/url"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/sqlite"
)

// limitFileSize makes writes beyond a file size fail in this process.
func limitFileSize(n uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}

func openForWriting(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String()+"?_busy_timeout=0")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// On a full disk the error names the cause.
func TestNoSpaceLeft(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200k"); err != nil {
		t.Skipf("no small file system can be mounted (%v); TestFullDisk limits files instead", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path := filepath.Join(dir, "index.db")
	if _, err := sqlite.Create(context.Background(), path, simple(nil).Blobs(), sqlite.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	before := state(t, dir)
	_, err := sqlite.Create(context.Background(), path, manyPackages("100").Blobs(), sqlite.WriteOptions{})
	if !errors.Is(err, sqlite.ErrWrite) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	sameState(t, before, state(t, dir))
}
