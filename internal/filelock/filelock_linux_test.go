package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/testing/filelocktest"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A lock is exclusive until its file is closed.
func TestLocks(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	if held, err := Try(first); !held || err != nil {
		t.Fatalf("got %v, %v", held, err)
	}
	for name, take := range map[string]func(*os.File) (bool, error){"Try": Try, "Take": Take} {
		if held, err := take(second); held || err != nil {
			t.Errorf("%s of a lock that is held: got %v, %v", name, held, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := Lock(ctx, second); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	first.Close()
	if err := Lock(t.Context(), second); err != nil {
		t.Error(err)
	}
}

// On file systems without locks writers proceed, but leftovers of other processes are not removed.
func TestWithoutLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		errno       unix.Errno
		unsupported bool
	}{
		"EOPNOTSUPP": {unix.EOPNOTSUPP, true}, "ENOSYS": {unix.ENOSYS, true}, "ENOLCK": {unix.ENOLCK, true},
		"EIO": {unix.EIO, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, path)
			filelocktest.Without(t, c.errno)
			if held, err := Try(f); held || errors.Is(err, ErrNoLocks) != c.unsupported || err == nil {
				t.Errorf("Try: got %v, %v", held, err)
			}
			if held, err := Take(f); held != c.unsupported || (err == nil) != c.unsupported {
				t.Errorf("Take: got %v, %v", held, err)
			}
			if err := Lock(t.Context(), f); (err == nil) != c.unsupported {
				t.Errorf("Lock: got %v", err)
			}
		})
	}
}
