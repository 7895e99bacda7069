package filelock

import (
	"context"
	"fmt"
	"os"
)

// Dir is an exclusive lock on a directory itself; no lock file is needed.
type Dir struct{ f *os.File }

// LockDir waits for the lock of a directory until the context ends. On file systems without locks it succeeds without
// one.
func LockDir(ctx context.Context, dir string) (*Dir, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := Lock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("waiting for the lock of %s: %w", dir, err)
	}
	return &Dir{f}, nil
}

// TryDir locks a directory if no other process has locked it. On file systems without locks it fails.
func TryDir(dir string) (*Dir, bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if held, _ := Try(f); !held {
		f.Close()
		return nil, false
	}
	return &Dir{f}, true
}

// Unlock releases the lock.
func (l *Dir) Unlock() { l.f.Close() }
